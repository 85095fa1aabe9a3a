#include "format/sodium.h"

#include <dlfcn.h>

#include <optional>
#include <type_traits>

namespace orknn::format {
namespace {

std::optional<Sodium> load() {
  void* library = nullptr;
  for (const char* name : {"libsodium.so.23", "libsodium.so.26", "libsodium.so"})
    if (!library) library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library) return std::nullopt;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    return function != nullptr;
  };
  Sodium s;
  int (*init)() = nullptr;
  const bool complete = find(s.memzero, "sodium_memzero") && find(s.random, "randombytes_buf") &&
                        find(s.pwhash, "crypto_pwhash") && find(s.seal, "crypto_aead_xchacha20poly1305_ietf_encrypt") &&
                        find(s.open, "crypto_aead_xchacha20poly1305_ietf_decrypt") && find(init, "sodium_init");
  if (!complete || init() < 0) return std::nullopt;
  return s;
}
}  // namespace

const Sodium* sodium() {
  static const std::optional<Sodium> loaded = load();
  return loaded ? &*loaded : nullptr;
}

}  // namespace orknn::format
