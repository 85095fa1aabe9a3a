// Splits TorchScript source into tokens, with indentation as tokens of its own.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace orknn::importer::pytorch {

enum class TokenKind : uint8_t { Name, Integer, Float, String, Symbol, Newline, Indent, Dedent, End };

struct Token {
  TokenKind kind = TokenKind::End;
  int line = 0;
  std::string_view text;  // names and symbols
  std::string string;     // contents of a string
  int64_t integer = 0;
  double number = 0;
};

Result<std::vector<Token>> tokenize(std::string_view text);

}  // namespace orknn::importer::pytorch
