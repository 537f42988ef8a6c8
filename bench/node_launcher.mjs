// Usage: node node_launcher.mjs PROFILE   (a JSON array: Bubblewrap's arguments before the command)
import { guestLauncher } from './guest_launcher.mjs';
import { serveTimed } from './timed_actions.mjs';

await serveTimed(guestLauncher(JSON.parse(process.argv[2])));
