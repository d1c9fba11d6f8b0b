import { sh } from '../shell/quote';

/**
 * Downloads the installer to `$state/installer`, by curl, or else wget.
 *
 * What is asked for by https does not come by http: a redirect would let anybody on the way choose what root runs. wget cannot tell one redirect from
 * another, so it follows none, unless a checksum holds the installer to what it is; that of busybox, which always would, is refused by the option.
 *
 * @param url - http or https
 * @param isPinned - the installer's SHA-256 is known, and is checked afterwards
 */
export function download(url: string, isPinned: boolean): string {
  const isSecure = url.startsWith('https://');
  const curl = `curl -sSfL${isSecure ? ' --proto =https --proto-redir =https' : ''}`;
  const wget = `wget -q${isSecure && !isPinned ? ' --max-redirect=0' : ''}`;
  const failed = (help: string): string => `broken DownloadFailed ${sh(`${url} cannot be downloaded${help}`)}`;
  const noCurl =
    isSecure && !isPinned ? ' by this wget without following a redirect. Install curl, or give installer.sha256' : '';
  return `  doing="downloading the installer"
  rm -f "$state/installer"
  if have curl; then
    run ${curl} --retry 3 --connect-timeout 15 --max-time 300 -o "$state/installer" ${sh(url)} || ${failed('')}
  else
    run ${wget} -T 60 -O "$state/installer" ${sh(url)} || ${failed(noCurl)}
  fi`;
}
