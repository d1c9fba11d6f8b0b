import { main } from '../../../operator/main';
import { Shop } from '../../constructs/kind/versions-kind';

// The operator of a kind of several versions, as a kind author would write it.
main({ kinds: [Shop] });
