/** The version of Kindred; the bundler puts it in. */
export const VERSION: string = process.env.KINDRED_VERSION ?? 'dev';
