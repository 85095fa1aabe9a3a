// How errors of the native side become Python's.
#pragma once

#include <nanobind/nanobind.h>

#include "base/status.h"
#include "base/utf8.h"

inline void check(const orknn::Status& status) {
  if (!status && PyErr_Occurred()) throw nanobind::python_error();  // Ctrl-C ended the call
  if (!status) throw nanobind::value_error(orknn::printable(status.to_string()).c_str());
}

template <class T>
T take(orknn::Result<T> result) {
  check(result.status());
  return std::move(*result);
}
