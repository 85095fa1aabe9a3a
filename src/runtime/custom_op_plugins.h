// Plug-in libraries librkcst_*.so: each brings one custom operator.
#pragma once

#include "runtime/session.h"

namespace orknn::runtime {

// Lets plug-ins serve the custom nodes of the session that have no implementation yet. A plug-in that cannot be used is warned
// of; a node that stays without operator is an error when it runs. Looks into the folders of OPENRKNN_OP_PLUGINS (separated by
// colons), then into the system's. A library stays loaded until the process ends.
void load_plugins(Session& session);

}  // namespace orknn::runtime
