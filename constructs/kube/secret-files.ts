import type { Problem } from './errors';

/** What is wrong with files by their paths, each with its key in a Secret. Source: Kubernetes' validation of a volume's `items`. */
export function configFilesProblems(path: string, files: Readonly<Record<string, string>> = {}): readonly Problem[] {
  return Object.entries(files).flatMap(([file, key]) => [
    ...(isLocalPath(file)
      ? []
      : [{ path, message: `"${file}" must be a path within the directory, such as "clusters/aws.yml", without ".."` }]),
    ...(/^[-._A-Za-z0-9]{1,253}$/.test(key) && !key.startsWith('..') && key !== '.'
      ? []
      : [{ path, message: `"${key}", for "${file}", is no key of a Secret: letters, digits, "-", "_" and "." only` }]),
  ]);
}

function isLocalPath(path: string): boolean {
  return path !== '' && !path.startsWith('/') && !path.startsWith('..') && !path.split('/').includes('..');
}
