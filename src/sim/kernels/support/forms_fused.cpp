// The portable cores with a fused multiply-add, computed where the machine has none: the floats of the faster forms, slowly.
#define ORKNN_FORM_FUSED
#include "sim/kernels/support/forms_body.h"
