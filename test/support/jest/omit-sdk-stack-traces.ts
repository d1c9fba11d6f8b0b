import { runInThisContext } from 'node:vm';

/** Where Pulumi's SDK makes a stack trace for each promise and each resource, in case that somebody asks for it. */
const ofEachPromiseOrResource = /\/@pulumi\/pulumi\/(runtime\/debuggable|resource)\.js$/;

/** The Error of the process, at which Jest sets the formatting that maps each frame to its source. */
const ProcessError = runInThisContext('Error') as Pick<ErrorConstructor, 'prepareStackTrace'>;

/**
 * A setup file of Jest: omits the stack traces that Pulumi's SDK makes for itself. Mapping their frames takes a third of the time of a
 * program. All other errors keep theirs.
 */
Error.prepareStackTrace = (error, frames) =>
  ofEachPromiseOrResource.test(frames[0]?.getFileName() ?? '')
    ? String(error)
    : (ProcessError.prepareStackTrace(error, frames) as unknown);
