// The keys of config(), stated once: Python, yml files and the options of the command line read one table.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "data/yaml.h"
#include "toolkit/config.h"

namespace orknn::toolkit {

struct ConfigKey {
  // What it takes. Lists come after Text: on the command line they are options that may be repeated.
  enum class Kind {
    Flag,
    Whole,
    Real,
    RealOrNone,
    Name,
    Text,
    NumberLists,
    Platforms,
    Flags,
    Names,
    Formats,
    ShapeSets,
    Targets
  };
  bool is_list() const { return kind > Kind::Text && kind != Kind::Platforms; }
  bool is_number() const { return kind >= Kind::Whole && kind <= Kind::RealOrNone; }
  std::string_view key;
  Kind kind;
  Status (*set)(BuildConfig& config, const data::YamlValue& value, std::string_view key);
  // What `set` takes, Null for an option that is not set. nullptr: optimizer and calibration are done with the option, so that
  // the files of hybrid quantization do not hold it.
  data::YamlValue (*get)(const BuildConfig& config);
  std::string_view help;
  bool toolkit1 = false;  // only Toolkit1 has it: a script that uses it expects its default chip and its forms of results
};
// In alphabetical order.
std::span<const ConfigKey> config_keys();

// A key of other releases.
struct OldConfigKey {
  std::string_view key;
  std::string_view now;   // the key that took its place; empty = it has no effect here
  bool toolkit1 = false;  // as above
};
std::span<const OldConfigKey> old_config_keys();

// Sets the option that config() calls `key`; old names are understood, keys without an effect are warned of.
Status set_option(BuildConfig& config, const std::string& key, const data::YamlValue& value);

}  // namespace orknn::toolkit
