import { kinds } from '../constructs/kinds/kinds';
import { main } from './main';

// The operator of Kindred's own kinds that do not act on machines.
main({ name: 'kindred-operator', kinds });
