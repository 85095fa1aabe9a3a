// Functions on model files that need neither a builder nor a session.
#pragma once

#include <nanobind/nanobind.h>

void bind_model_tools(nanobind::module_& m);
