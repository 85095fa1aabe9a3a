// Which library this code is linked into: librknnrt, or librknnmrt, the small chips' runtime, which has the zero-copy API only.
// The file library_identity.cpp is compiled once for each.
#pragma once

#include <string_view>

namespace orknn::runtime {

// Of the driver that a board would have.
inline constexpr std::string_view kDriverVersion = "0.0.0 (simulator)";

// "librknnrt version: 1.2.3 (OpenRKNN)", and the part after the colon.
std::string_view library_version_text();
inline std::string_view api_version() { return library_version_text().substr(library_version_text().find(": ") + 2); }
// False for functions of the C API that this library only refuses.
bool library_offers(std::string_view function);

}  // namespace orknn::runtime
