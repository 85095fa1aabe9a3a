// The compute cores in plain C++.
#include "sim/kernels/support/forms_body.h"
