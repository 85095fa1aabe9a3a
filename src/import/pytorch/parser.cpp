// Recursive descent over the tokens; nesting is bounded so that no source can exhaust the stack.
#include <algorithm>

#include "import/pytorch/lexer.h"
#include "import/pytorch/source.h"

namespace orknn::importer::pytorch {
namespace {
constexpr int kMaxNesting = 200;

bool is_root_of_qualified(std::string_view name) {
  return name == "torch" || name == "ops" || name == "__torch__" || name == "CONSTANTS";
}

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  Result<SourceFile> file() {
    SourceFile file;
    while (!is(TokenKind::End)) {
      if (is_name("class")) {
        ORKNN_TRY_ASSIGN(Class c, class_definition());
        file.classes[c.name] = std::move(c);
      } else if (is_name("def")) {
        ORKNN_TRY_ASSIGN(Function f, function_definition());
        file.functions[f.name] = std::move(f);
      } else if (is_name("import") || is_name("from")) {
        skip_line();
      } else {
        ORKNN_TRY(statement().status());  // `op_version_set = 1` of old files
      }
    }
    return file;
  }

  Result<Expression> whole_expression() {
    ORKNN_TRY_ASSIGN(Expression e, expression());
    if (is(TokenKind::Newline)) ++position_;
    if (!is(TokenKind::End)) return unexpected("the end");
    return e;
  }

 private:
  const Token& token() const { return tokens_[position_]; }
  bool is(TokenKind kind) const { return token().kind == kind; }
  bool is_symbol(std::string_view s) const { return token().kind == TokenKind::Symbol && token().text == s; }
  bool is_name(std::string_view s) const { return token().kind == TokenKind::Name && token().text == s; }
  bool accept(std::string_view symbol) {
    if (!is_symbol(symbol)) return false;
    ++position_;
    return true;
  }
  Status unexpected(const std::string& wanted) const {
    const Token& t = token();
    const std::string found = t.kind == TokenKind::End      ? "the end of the file"
                              : t.kind == TokenKind::String ? "a string"
                              : t.text.empty()              ? "the end of a line or block"
                                                            : "'" + std::string(t.text) + "'";
    return invalid_model("line " + std::to_string(t.line) + ": the source is not understood").expected(wanted).found(found);
  }
  Status expect(std::string_view symbol) { return accept(symbol) ? Status() : unexpected("'" + std::string(symbol) + "'"); }
  Status expect(TokenKind kind, const char* what) {
    if (!is(kind)) return unexpected(what);
    ++position_;
    return {};
  }
  Result<std::string> name() {
    if (!is(TokenKind::Name)) return unexpected("a name");
    return std::string(tokens_[position_++].text);
  }
  void skip_line() {
    while (!is(TokenKind::Newline) && !is(TokenKind::End)) ++position_;
    if (is(TokenKind::Newline)) ++position_;
  }

  // Counts nesting for as long as it lives.
  class Level {
   public:
    explicit Level(int& depth) : depth_(depth) { ++depth_; }
    ~Level() { --depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    int& depth_;
  };
  Status check_depth() const { return depth_ > kMaxNesting ? too_deep() : Status(); }
  Status too_deep() const { return invalid_model("line " + std::to_string(token().line) + ": the source is nested too deeply"); }

  // --- expressions
  Expression make(Syntax syntax, std::string text = {}) const {
    Expression e;
    e.syntax = syntax;
    e.line = token().line;
    e.text = std::move(text);
    return e;
  }

  static void adopt(Expression& parent, Expression child) {
    parent.depth = std::max(parent.depth, child.depth + 1);
    parent.children.push_back(std::move(child));
  }

  // The tree is bounded too: a chain of suffixes nests without recursion here, but not for those who walk it.
  Result<Expression> expression() {
    ORKNN_TRY_ASSIGN(Expression e, unbounded_expression());
    if (e.depth > kMaxNesting) return too_deep();
    return e;
  }

  Result<Expression> unbounded_expression() {
    const Level level(depth_);
    ORKNN_TRY(check_depth());
    if (is_symbol("-") || is_name("not")) {
      Expression e = make(is_symbol("-") ? Syntax::Negate : Syntax::Not);
      ++position_;
      ORKNN_TRY_ASSIGN(Expression operand, expression());
      // A literal with its sign is a literal.
      if (e.syntax == Syntax::Negate && operand.syntax == Syntax::Integer) {
        operand.integer = static_cast<int64_t>(0 - static_cast<uint64_t>(operand.integer));
        return operand;
      }
      if (e.syntax == Syntax::Negate && operand.syntax == Syntax::Float) {
        operand.number = -operand.number;
        return operand;
      }
      adopt(e, std::move(operand));
      return e;
    }
    ORKNN_TRY_ASSIGN(Expression e, atom());
    return suffixes(std::move(e));
  }

  Result<Expression> atom() {
    const Token& t = token();
    switch (t.kind) {
      case TokenKind::Integer: {
        Expression e = make(Syntax::Integer);
        e.integer = t.integer;
        ++position_;
        return e;
      }
      case TokenKind::Float: {
        Expression e = make(Syntax::Float);
        e.number = t.number;
        ++position_;
        return e;
      }
      case TokenKind::String: {
        Expression e = make(Syntax::String, t.string);
        for (++position_; is(TokenKind::String); ++position_) e.text += token().string;
        return e;
      }
      case TokenKind::Name: {
        if (t.text == "None" || t.text == "True" || t.text == "False") {
          Expression e = make(t.text == "None" ? Syntax::None : t.text == "True" ? Syntax::True : Syntax::False);
          ++position_;
          return e;
        }
        Expression e = make(Syntax::Name, std::string(t.text));
        ++position_;
        if (is_root_of_qualified(e.text)) {
          e.syntax = Syntax::Qualified;
          while (is_symbol(".") && tokens_[position_ + 1].kind == TokenKind::Name) {
            e.text += "." + std::string(tokens_[position_ + 1].text);
            position_ += 2;
          }
        }
        return e;
      }
      default: break;
    }
    if (is_symbol("(")) return parenthesized();
    if (is_symbol("[")) {
      Expression e = make(Syntax::List);
      ++position_;
      ORKNN_TRY(items("]", e));
      return e;
    }
    if (is_symbol("{")) return dictionary();
    return unexpected("a value");
  }

  // "(a)" is a; "()", "(a,)" and "(a, b)" are tuples.
  Result<Expression> parenthesized() {
    Expression tuple = make(Syntax::Tuple);
    ++position_;
    bool comma = false;
    while (!accept(")")) {
      ORKNN_TRY_ASSIGN(Expression item, expression());
      adopt(tuple, std::move(item));
      comma = accept(",");
      if (!comma && !is_symbol(")")) return unexpected("',' or ')'");
    }
    if (tuple.children.size() == 1 && !comma) {
      Expression inner = std::move(tuple.children[0]);
      return inner;
    }
    return tuple;
  }

  Result<Expression> dictionary() {
    Expression e = make(Syntax::Dict);
    ++position_;
    while (!accept("}")) {
      ORKNN_TRY_ASSIGN(Expression key, expression());
      ORKNN_TRY(expect(":"));
      ORKNN_TRY_ASSIGN(Expression value, expression());
      adopt(e, std::move(key));
      adopt(e, std::move(value));
      if (!accept(",") && !is_symbol("}")) return unexpected("',' or '}'");
    }
    return e;
  }

  Status items(std::string_view close, Expression& parent) {
    while (!accept(close)) {
      ORKNN_TRY_ASSIGN(Expression item, expression());
      adopt(parent, std::move(item));
      if (!accept(",") && !is_symbol(close)) return unexpected("',' or '" + std::string(close) + "'");
    }
    return {};
  }

  Result<Expression> suffixes(Expression e) {
    while (true) {
      if (e.depth > kMaxNesting) return too_deep();
      if (is_symbol(".")) {
        ++position_;
        Expression outer = make(Syntax::Attribute);
        ORKNN_TRY_ASSIGN(outer.text, name());
        adopt(outer, std::move(e));
        e = std::move(outer);
      } else if (is_symbol("[")) {
        Expression outer = make(Syntax::Subscript);
        ++position_;
        adopt(outer, std::move(e));
        Expression index = make(Syntax::Tuple);
        ORKNN_TRY(items("]", index));
        if (index.children.size() == 1) {
          Expression only = std::move(index.children[0]);
          adopt(outer, std::move(only));
        } else {  // only types are subscripted with several things
          adopt(outer, std::move(index));
        }
        e = std::move(outer);
      } else if (is_symbol("(")) {
        Expression outer = make(Syntax::Call);
        ++position_;
        adopt(outer, std::move(e));
        while (!accept(")")) {
          std::string keyword;
          if (is(TokenKind::Name) && tokens_[position_ + 1].kind == TokenKind::Symbol && tokens_[position_ + 1].text == "=") {
            keyword = std::string(token().text);
            position_ += 2;
          }
          ORKNN_TRY_ASSIGN(Expression argument, expression());
          adopt(outer, std::move(argument));
          outer.keywords.push_back(std::move(keyword));
          if (!accept(",") && !is_symbol(")")) return unexpected("',' or ')'");
        }
        e = std::move(outer);
      } else {
        return e;
      }
    }
  }

  // --- statements
  Result<std::vector<Statement>> block() {
    ORKNN_TRY(expect(":"));
    const Level level(depth_);
    ORKNN_TRY(check_depth());
    std::vector<Statement> statements;
    if (!is(TokenKind::Newline)) {
      ORKNN_TRY_ASSIGN(Statement one, statement());
      statements.push_back(std::move(one));
      return statements;
    }
    ++position_;
    ORKNN_TRY(expect(TokenKind::Indent, "an indented block"));
    while (!is(TokenKind::Dedent)) {
      if (is(TokenKind::End)) return unexpected("a statement");
      ORKNN_TRY_ASSIGN(Statement one, statement());
      statements.push_back(std::move(one));
    }
    ++position_;
    return statements;
  }

  Result<Statement> statement() {
    Statement s;
    s.line = token().line;
    if (is_name("if") || is_name("elif")) {
      s.kind = StatementKind::If;
      ++position_;
      ORKNN_TRY_ASSIGN(s.value, expression());
      ORKNN_TRY_ASSIGN(s.body, block());
      if (is_name("elif")) {
        const Level level(depth_);
        ORKNN_TRY(check_depth());
        ORKNN_TRY_ASSIGN(Statement nested, statement());
        s.otherwise.push_back(std::move(nested));
      } else if (is_name("else")) {
        ++position_;
        ORKNN_TRY_ASSIGN(s.otherwise, block());
      }
      return s;
    }
    if (is_name("for")) {
      s.kind = StatementKind::For;
      ++position_;
      ORKNN_TRY_ASSIGN(Expression variable, expression());
      s.targets.push_back(std::move(variable));
      if (!is_name("in")) return unexpected("'in'");
      ++position_;
      ORKNN_TRY_ASSIGN(s.value, expression());
      ORKNN_TRY_ASSIGN(s.body, block());
      return s;
    }
    if (is_name("while")) {
      s.kind = StatementKind::While;
      ++position_;
      ORKNN_TRY_ASSIGN(s.value, expression());
      ORKNN_TRY_ASSIGN(s.body, block());
      return s;
    }
    if (is_name("with")) {
      s.kind = StatementKind::With;
      ++position_;
      ORKNN_TRY_ASSIGN(s.value, expression());
      if (is_name("as")) {
        ++position_;
        ORKNN_TRY_ASSIGN(Expression variable, expression());
        s.targets.push_back(std::move(variable));
      }
      ORKNN_TRY_ASSIGN(s.body, block());
      return s;
    }
    if (is_name("return")) {
      s.kind = StatementKind::Return;
      ++position_;
      if (!is(TokenKind::Newline)) {
        ORKNN_TRY_ASSIGN(s.value, value_list());
      }
      return end_of_line(std::move(s));
    }
    if (is_name("pass")) {
      ++position_;
      return end_of_line(std::move(s));
    }
    return simple_statement(std::move(s));
  }

  // "a, b" without parentheses is a tuple.
  Result<Expression> value_list() {
    ORKNN_TRY_ASSIGN(Expression first, expression());
    if (!is_symbol(",")) return first;
    Expression tuple = make(Syntax::Tuple);
    adopt(tuple, std::move(first));
    while (accept(",")) {
      if (is(TokenKind::Newline) || is(TokenKind::End) || is_symbol("=")) break;
      ORKNN_TRY_ASSIGN(Expression next, expression());
      adopt(tuple, std::move(next));
    }
    return tuple;
  }

  Result<Statement> simple_statement(Statement s) {
    ORKNN_TRY_ASSIGN(Expression first, value_list());
    if (accept(":")) {  // `name : Type = value`
      ORKNN_TRY_ASSIGN(const Expression type, expression());
      if (!is_symbol("=")) return end_of_line(std::move(s));
    }
    if (!accept("=")) {
      s.kind = StatementKind::Evaluate;
      s.value = std::move(first);
      return end_of_line(std::move(s));
    }
    s.kind = StatementKind::Assign;
    if (first.syntax == Syntax::Tuple) {
      s.targets = std::move(first.children);
      s.unpack = true;
    } else {
      s.targets.push_back(std::move(first));
    }
    for (const Expression& target : s.targets)
      if (target.syntax != Syntax::Name && target.syntax != Syntax::Attribute && target.syntax != Syntax::Subscript)
        return unexpected("something that can be assigned to");
    ORKNN_TRY_ASSIGN(s.value, value_list());
    return end_of_line(std::move(s));
  }

  Result<Statement> end_of_line(Statement s) {
    if (is(TokenKind::Newline))
      ++position_;
    else if (!is(TokenKind::End))
      return unexpected("the end of the line");
    return s;
  }

  // --- definitions
  Result<Function> function_definition() {
    ++position_;
    Function f;
    ORKNN_TRY_ASSIGN(f.name, name());
    ORKNN_TRY(expect("("));
    while (!accept(")")) {
      if (accept("*")) {
        accept(",");
        continue;
      }
      Parameter p;
      ORKNN_TRY_ASSIGN(p.name, name());
      if (accept(":")) {
        ORKNN_TRY_ASSIGN(p.type, expression());
      }
      if (accept("=")) {
        ORKNN_TRY_ASSIGN(p.fallback, expression());
      }
      f.parameters.push_back(std::move(p));
      if (!accept(",") && !is_symbol(")")) return unexpected("',' or ')'");
    }
    if (accept("->")) ORKNN_TRY(expression().status());
    ORKNN_TRY_ASSIGN(f.body, block());
    return f;
  }

  Result<Class> class_definition() {
    ++position_;
    Class c;
    ORKNN_TRY_ASSIGN(c.name, name());
    if (accept("(")) {
      while (!accept(")")) {
        ORKNN_TRY_ASSIGN(const Expression base, expression());
        if (c.base.empty()) c.base = base.text;
        accept(",");
      }
    }
    ORKNN_TRY(expect(":"));
    ORKNN_TRY(expect(TokenKind::Newline, "the end of the line"));
    ORKNN_TRY(expect(TokenKind::Indent, "an indented block"));
    while (!is(TokenKind::Dedent)) {
      if (is(TokenKind::End)) return unexpected("a member of the class");
      if (is_name("def")) {
        ORKNN_TRY_ASSIGN(Function f, function_definition());
        c.methods[f.name] = std::move(f);
      } else {
        ORKNN_TRY(field(c));
      }
    }
    ++position_;
    return c;
  }

  // `name : Type`, `name : Final[Type] = value`, `name = value`, `__annotations__["0"] = Type`.
  Status field(Class& c) {
    if (is_name("pass")) {
      ++position_;
      return expect(TokenKind::Newline, "the end of the line");
    }
    ORKNN_TRY_ASSIGN(Expression target, expression());
    std::string field_name = target.text;
    bool is_annotation = false;
    if (target.syntax == Syntax::Subscript) {
      is_annotation = true;
      field_name = target.children[1].text;
    }
    if (accept(":")) ORKNN_TRY(expression().status());
    std::optional<Expression> value;
    if (accept("=")) {
      ORKNN_TRY_ASSIGN(value, value_list());
      if (is_annotation) value.reset();
    }
    c.fields.emplace_back(std::move(field_name), std::move(value));
    return expect(TokenKind::Newline, "the end of the line");
  }

  std::vector<Token> tokens_;
  size_t position_ = 0;
  int depth_ = 0;
};
}  // namespace

Result<SourceFile> parse_source(std::string_view text) {
  ORKNN_TRY_ASSIGN(auto tokens, tokenize(text));
  return Parser(std::move(tokens)).file();
}

Result<Expression> parse_expression(std::string_view text) {
  ORKNN_TRY_ASSIGN(auto tokens, tokenize(text));
  return Parser(std::move(tokens)).whole_expression();
}

}  // namespace orknn::importer::pytorch
