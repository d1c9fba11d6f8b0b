/** What this process has computed so far, in milliseconds: unlike the clock, it stands still while other processes have the machine. */
export function cpuTimeMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
