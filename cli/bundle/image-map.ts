import path from 'node:path';

/** Where a bundle was made. */
interface BundlePlace {
  /** The bundle, as an absolute path; its map names sources relative to it. */
  readonly bundle: string;
  /** The project's folder. */
  readonly root: string;
  /** Kindred's folder. */
  readonly kindred: string;
}

/**
 * The map of a bundle for an image: sources are named as if the project were beside the bundle, and packages in its
 * node_modules, wherever they are on this machine. So the same sources give the same image in any folder.
 */
export function imageMap(map: string, { bundle, root, kindred }: BundlePlace): string {
  const parsed = JSON.parse(map) as { readonly sources: readonly string[] };
  const nameOf = (source: string): string => {
    const file = path.resolve(path.dirname(bundle), source);
    const [, inPackage] = /.*\/node_modules\/(.*)$/.exec(file) ?? [];
    if (inPackage !== undefined) return `node_modules/${inPackage}`;
    const isKindreds = root !== kindred && file.startsWith(kindred + path.sep);
    return isKindreds ? `node_modules/kindred/${path.relative(kindred, file)}` : path.relative(root, file);
  };
  return JSON.stringify({ ...parsed, sources: parsed.sources.map(nameOf) });
}
