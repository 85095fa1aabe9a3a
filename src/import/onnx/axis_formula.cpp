#include "import/onnx/axis_formula.h"

#include <algorithm>
#include <charconv>

#include "base/utf8.h"

namespace orknn::importer::onnx {
namespace {

bool is_letter(char c) { return c >= 'a' && c <= 'z'; }

Status check_field(std::string_view field) {
  if (field.empty()) return invalid_argument("a field between commas is empty");
  if (field == "1" || std::all_of(field.begin(), field.end(), is_letter)) return {};
  return invalid_argument("the field '" + to_utf8(field) + "' is not an axis")
      .expected("small letters, or 1 for a dimension of one")
      .hint("fields are separated by commas; other sizes are stated in brackets, ab,c[a=2]->b,ac");
}

Result<std::vector<std::string>> fields_of(std::string_view text) {
  std::vector<std::string> fields;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string_view field = text.substr(at, end - at);
    ORKNN_TRY(check_field(field));
    fields.emplace_back(field == "1" ? std::string_view() : field);
    at = end + 1;
  }
  return fields;
}

std::string letters_of(const std::vector<std::string>& fields) {
  std::string letters;
  for (const std::string& field : fields) letters += field;
  return letters;
}

Status check_unique(const std::string& letters, const char* side) {
  for (size_t i = 0; i < letters.size(); ++i)
    if (letters.find(letters[i], i + 1) != letters.npos)
      return invalid_argument("the axis '" + std::string(1, letters[i]) + "' is there twice on the " + std::string(side) +
                              " side");
  return {};
}

// "b=2,d=4" between the brackets.
Status read_sizes(std::string_view text, const std::string& letters, std::map<char, int64_t>& sizes) {
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string_view part = text.substr(at, end - at);
    int64_t size = 0;
    const char* last = part.data() + part.size();
    const bool named = part.size() > 2 && is_letter(part[0]) && part[1] == '=';
    if (!named || std::from_chars(part.data() + 2, last, size).ptr != last || size <= 0)
      return invalid_argument("'" + to_utf8(part) + "' states no size").expected("a letter, '=' and a whole number above 0");
    if (letters.find(part[0]) == letters.npos)
      return invalid_argument("the size of '" + std::string(1, part[0]) + "' is stated, but no field has it");
    if (!sizes.emplace(part[0], size).second)
      return invalid_argument("the size of '" + std::string(1, part[0]) + "' is stated twice");
    at = end + 1;
  }
  return {};
}

Result<AxisFormula> parse_without_blanks(std::string_view text) {
  const size_t arrow = text.find("->");
  if (arrow == text.npos || text.find("->", arrow + 2) != text.npos)
    return invalid_argument("a formula has one '->'").hint("for example a,b,c->a,c,b");
  std::string_view left = text.substr(0, arrow), sizes;
  const std::string_view right = text.substr(arrow + 2);
  const size_t bracket = left.find('[');
  if (bracket != left.npos) {
    if (left.back() != ']') return invalid_argument("sizes in brackets end the left side").expected("a,bc[b=2]->...");
    sizes = left.substr(bracket + 1, left.size() - bracket - 2);
    left = left.substr(0, bracket);
  }
  if (left.size() > 1 && left.back() == ',') left.remove_suffix(1);
  if (right.find('[') != right.npos)
    return invalid_argument("sizes in brackets belong to the left side").expected("a,bc[b=2]->...");
  AxisFormula formula;
  ORKNN_TRY_ASSIGN(formula.left, fields_of(left));
  ORKNN_TRY_ASSIGN(formula.right, fields_of(right));
  const std::string known = letters_of(formula.left), used = letters_of(formula.right);
  ORKNN_TRY(check_unique(known, "left"));
  ORKNN_TRY(check_unique(used, "right"));
  for (char c : known)
    if (used.find(c) == used.npos) return invalid_argument("the axis '" + std::string(1, c) + "' is missing on the right side");
  for (char c : used)
    if (known.find(c) == known.npos)
      return invalid_argument("the axis '" + std::string(1, c) + "' of the right side is not known");
  if (bracket != left.npos) ORKNN_TRY(read_sizes(sizes, known, formula.sizes));
  return formula;
}

// The sizes of the letters of one dimension; -1 = open.
Status split_dimension(const std::string& letters, int64_t dim, size_t index, std::map<char, int64_t>& sizes) {
  const std::string which = "dimension " + std::to_string(index);
  if (letters.empty()) {
    if (dim != 1)
      return invalid_argument("the formula says that " + which + " is 1").found(dim < 0 ? "an open one" : std::to_string(dim));
    return {};
  }
  int64_t product = 1;
  std::string unknown;
  for (char c : letters) {
    const auto size = sizes.find(c);
    if (size == sizes.end())
      unknown += c;
    else if (__builtin_mul_overflow(product, size->second, &product))
      return invalid_argument("the sizes of " + which + " are too large");
  }
  if (unknown.size() > 1)
    return invalid_argument(which + " has several axes of unknown size ('" + unknown + "')")
        .hint("state all but one in brackets, ab,c[a=2]->...");
  if (dim >= 0 && (unknown.empty() ? product != dim : dim % product != 0))
    return invalid_argument("the axes '" + letters + "' do not fit " + which)
        .expected(which + " to be " + std::string(unknown.empty() ? "" : "a multiple of ") + std::to_string(product))
        .found(std::to_string(dim));
  if (!unknown.empty()) sizes[unknown[0]] = dim < 0 ? -1 : dim / product;
  return {};
}

AxisExtent extent_of(const std::string& letters, const std::map<char, int64_t>& sizes) {
  AxisExtent extent;
  for (char c : letters) {
    const int64_t size = sizes.at(c);
    if (size < 0)
      extent.open += c;
    else
      extent.known *= size;  // no overflow: parts of dimensions, whose product the caller checked
  }
  std::sort(extent.open.begin(), extent.open.end());
  return extent;
}
}  // namespace

std::string to_string(const AxisExtents& extents) {
  std::string text = "[";
  for (const AxisExtent& e : extents) text += (text.size() > 1 ? ", " : "") + (e.is_known() ? std::to_string(e.known) : "?");
  return text + "]";
}

Result<AxisFormula> parse_axis_formula(std::string_view text) {
  std::string dense;
  std::copy_if(text.begin(), text.end(), std::back_inserter(dense), [](char c) { return c != ' ' && c != '\t'; });
  auto formula = parse_without_blanks(dense);
  if (!formula) {
    std::string reason = formula.status().to_string();
    if (reason.ends_with('.')) reason.pop_back();  // that of the whole line follows
    return invalid_argument("Invalid formula '" + to_utf8(text) + "': " + reason);
  }
  return formula;
}

Result<AxisPlan> apply_axis_formula(const AxisFormula& formula, const ir::Dims& dims) {
  if (formula.left.size() != dims.size())
    return shape_mismatch("the formula is for a tensor of another rank")
        .expected(std::to_string(dims.size()) + " fields on the left side")
        .found(std::to_string(formula.left.size()));
  ir::Dims known_dims;
  for (int64_t d : dims) known_dims.push_back(d < 0 ? 1 : d);
  for (const auto& [letter, size] : formula.sizes) known_dims.push_back(size);
  if (!ir::checked_element_count(known_dims)) return invalid_argument("the sizes of the formula are too large");
  std::map<char, int64_t> sizes = formula.sizes;
  for (size_t i = 0; i < dims.size(); ++i) ORKNN_TRY(split_dimension(formula.left[i], dims[i], i, sizes));
  AxisPlan plan;
  for (const std::string& field : formula.left) plan.before.push_back(extent_of(field, sizes));
  for (const std::string& field : formula.right) plan.after.push_back(extent_of(field, sizes));
  const std::string left = letters_of(formula.left), right = letters_of(formula.right);
  for (char c : left) plan.left_axes.push_back(extent_of(std::string(1, c), sizes));
  for (char c : right) {
    plan.right_axes.push_back(extent_of(std::string(1, c), sizes));
    plan.to_right.push_back(left.find(c));
  }
  plan.left_names = formula.left;
  plan.right_names = formula.right;
  return plan;
}

}  // namespace orknn::importer::onnx
