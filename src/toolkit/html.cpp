#include "toolkit/html.h"

#include <fmt/format.h>

namespace orknn::toolkit {

std::string html_escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

std::string html_head(std::string_view title, std::string_view extra_style) {
  constexpr std::string_view kStyle =
      "body{font:15px/1.5 system-ui,sans-serif;max-width:1140px;margin:2rem auto;padding:0 "
      "1rem;color:#222;background:#fff}h1{font-size:1.5rem;margin-bottom:.3rem}"
      "h2{margin:2rem 0 .4rem;font-size:1.2rem;border-bottom:1px solid "
      "#ddd}table{border-collapse:collapse;width:100%;font-size:13px}"
      "th,td{text-align:left;padding:3px 8px;border-bottom:1px solid "
      "#eee;vertical-align:top}td.n,th.n{text-align:right;white-space:nowrap}svg{width:100%;height:auto;background:#fafafa}"
      "svg text{font:11px system-ui,sans-serif;fill:#555}.grid{stroke:#e4e4e4}.note{color:#666;font-size:13px;margin:.2rem 0 "
      "1rem}"
      ".key span{display:inline-block;width:.8em;height:.8em;margin:0 .3em 0 1em}.figures{display:flex;flex-wrap:wrap;gap:.6rem "
      "2rem;margin:.8rem 0}"
      ".figures div{font-size:13px;color:#666}.figures b{display:block;font-size:1.15rem;color:#222}";
  return fmt::format(
      "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\"><title>{0}</title><style>{1}{2}</style><h1>{0}</h1>",
      html_escaped(title), kStyle, extra_style);
}

}  // namespace orknn::toolkit
