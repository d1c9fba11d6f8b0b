import { compareResourceVersions } from './resource-version';

/** Where the versions of one name are kept. */
export interface OwnVersionsOf {
  /** Versions that our own writes made and the stream has not told yet. */
  ownVersions?: string[] | undefined;
}

/** Which object a version is one of. */
interface OwnVersion {
  readonly version: string;
  readonly key: string;
  readonly uid: string | undefined;
}

/** The versions that our own writes made and that the stream has still to tell, by name and by version. */
export class OwnVersions {
  private readonly byVersion = new Map<string, OwnVersion>();

  /** How many the stream has still to tell. */
  get size(): number {
    return this.byVersion.size;
  }

  /** What our own write made this version of. */
  get(version: string): OwnVersion | undefined {
    return this.byVersion.get(version);
  }

  add(slot: OwnVersionsOf, own: OwnVersion): void {
    (slot.ownVersions ??= []).push(own.version);
    this.byVersion.set(own.version, own);
  }

  /** The stream has come to this version; @returns whether it is one of ours */
  told(slot: OwnVersionsOf, version: string): boolean {
    const { ownVersions } = slot;
    if (ownVersions === undefined) return false;
    const still: string[] = [];
    for (const own of ownVersions) {
      if (compareResourceVersions(own, version) > 0) still.push(own);
      else this.byVersion.delete(own);
    }
    slot.ownVersions = still.length === 0 ? undefined : still;
    return ownVersions.includes(version);
  }

  /** What the name's next events are is told by their contents. */
  forget(slot: OwnVersionsOf): void {
    for (const version of slot.ownVersions ?? []) this.byVersion.delete(version);
    slot.ownVersions = undefined;
  }
}
