// The accuracy report as one page: where the error comes from, what to do about it, and what the values of every layer look like.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "toolkit/accuracy.h"
#include "toolkit/html.h"

namespace orknn::toolkit {
namespace {

constexpr const char *kFloatColour = "#8fb4dc", *kBuiltColour = "#d9822b", *kEntireColour = "#2f6fb2", *kSingleColour = "#d9822b";

std::string_view grade(const std::optional<Distance>& d) {
  if (!d) return "";
  if (!d->word.empty() || d->cosine < kBadCosine) return "bad";
  return d->cosine < kSuspiciousCosine ? "doubtful" : "good";
}

std::string cosine_text(const std::optional<Distance>& d) {
  return !d ? "" : d->word.empty() ? fmt::format("{:.5f}", d->cosine) : d->word;
}

// Logarithmic: what is missing from 1, so that 0.9 and 0.99999 are both seen.
struct ErrorScale {
  static constexpr double kBest = 1e-7, kTop = 14, kHeight = 300;
  static double y(const Distance& d) {
    const double loss = d.word.empty() ? std::clamp(1 - d.cosine, kBest, 1.0) : 1;
    return y(loss);
  }
  static double y(double loss) { return kTop + (kHeight - kTop) * std::log10(loss) / std::log10(kBest); }
};

std::string error_plot(const AccuracyReport& report) {
  std::vector<const LayerAccuracy*> rows;
  for (const LayerAccuracy& l : report.layers)
    if (!l.fused && l.entire && l.single) rows.push_back(&l);
  if (rows.empty()) return "<p>No layer can be compared.</p>";
  constexpr double kLeft = 62, kRight = 10;
  const double step = (kChartWidth - kLeft - kRight) / static_cast<double>(rows.size());
  const auto x = [&](size_t i) { return kLeft + (static_cast<double>(i) + 0.5) * step; };
  std::string svg = fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"error per layer\">", kChartWidth,
                                ErrorScale::kHeight + 26);
  const double top = ErrorScale::y(1.0), red = ErrorScale::y(1 - kBadCosine), yellow = ErrorScale::y(1 - kSuspiciousCosine);
  svg += fmt::format(
      "<rect x=\"{0}\" y=\"{1:.1f}\" width=\"{2}\" height=\"{3:.1f}\" fill=\"#fbe9e7\"/><rect x=\"{0}\" y=\"{4:.1f}\" "
      "width=\"{2}\" height=\"{5:.1f}\" fill=\"#fff6dc\"/>",
      kLeft, top, kChartWidth - kLeft - kRight, red - top, red, yellow - red);
  for (int power = 0; power >= -7; --power) {
    const double loss = std::pow(10.0, power);
    svg += fmt::format(
        "<line x1=\"{0}\" y1=\"{1:.1f}\" x2=\"{2}\" y2=\"{1:.1f}\" class=\"grid\"/><text x=\"{3}\" y=\"{4:.1f}\" "
        "text-anchor=\"end\">{5}</text>",
        kLeft, ErrorScale::y(loss), kChartWidth - kRight, kLeft - 6, ErrorScale::y(loss) + 4,
        power == 0    ? "0"
        : power == -7 ? "1"
                      : fmt::format("{:.{}f}", 1 - loss, -power));
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    const Distance& alone = *rows[i]->single;
    const double y = ErrorScale::y(alone);
    svg += fmt::format("<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" fill=\"{}\" fill-opacity=\"0.75\"/>",
                       x(i) - step * 0.38, y, std::max(step * 0.76, 0.5), ErrorScale::kHeight - y, kSingleColour);
  }
  std::string line;
  for (size_t i = 0; i < rows.size(); ++i) line += fmt::format("{:.1f},{:.1f} ", x(i), ErrorScale::y(*rows[i]->entire));
  svg += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\"/>", line, kEntireColour);
  for (size_t i = 0; i < rows.size(); ++i) {
    svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" fill=\"{}\"/>", x(i), ErrorScale::y(*rows[i]->entire),
                       std::clamp(step * 0.3, 1.2, 3.5), kEntireColour);
    // The whole height of a layer reacts to the pointer and leads to its details.
    svg += fmt::format(
        "<a href=\"#layer{}\"><rect x=\"{:.2f}\" y=\"0\" width=\"{:.2f}\" height=\"{}\" "
        "fill=\"transparent\"><title>{}</title></rect></a>",
        rows[i] - report.layers.data(), x(i) - step / 2, step, ErrorScale::kHeight,
        html_escaped(fmt::format("[{}] {}\nwhole run {}\nalone {}", rows[i]->type, rows[i]->name, cosine_text(rows[i]->entire),
                                 cosine_text(rows[i]->single))));
  }
  svg += fmt::format("<text x=\"{}\" y=\"{}\">input</text><text x=\"{}\" y=\"{}\" text-anchor=\"end\">output</text></svg>", kLeft,
                     ErrorScale::kHeight + 18, kChartWidth - kRight, ErrorScale::kHeight + 18);
  return fmt::format(
             "<p class=\"key\">cosine with the float model:<span style=\"background:{}\"></span>whole run, errors add up<span "
             "style=\"background:{}\"></span>the layer alone, fed with exact values"
             "<span style=\"background:#fff6dc;border:1px solid #ddd\"></span>suspicious<span "
             "style=\"background:#fbe9e7;border:1px solid #ddd\"></span>bad</p>",
             kEntireColour, kSingleColour) +
         svg +
         "<p class=\"note\">Higher is worse; the scale is logarithmic. A high bar marks a layer that loses accuracy itself, a "
         "high line without a bar one that only passes errors on. Point at a layer for its name, click for its values.</p>";
}

std::string histogram(const LayerValues& v) {
  constexpr double kHeight = 120, kHistogramWidth = 520;
  int64_t most = 1;
  for (const auto* bins : {&v.expected_bins, &v.found_bins})
    for (int64_t n : *bins) most = std::max(most, n);
  // Logarithmic, or the one bin around zero would hide all others.
  const auto height = [&](int64_t n) {
    return n == 0 ? 0 : 4 + (kHeight - 8) * std::log1p(static_cast<double>(n)) / std::log1p(static_cast<double>(most));
  };
  std::string svg =
      fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"histogram\">", kHistogramWidth, kHeight + 18);
  const double step = kHistogramWidth / static_cast<double>(LayerValues::kBins);
  for (size_t i = 0; i < v.expected_bins.size(); ++i) {
    const double x = static_cast<double>(i) * step, width = (v.high - v.low) / static_cast<double>(LayerValues::kBins),
                 from = v.low + width * static_cast<double>(i);
    svg += fmt::format(
        "<g><title>{:.4g} to {:.4g}: float {}, built {}</title><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
        "height=\"{:.1f}\" fill=\"{}\"/><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/></g>",
        from, from + width, v.expected_bins[i], v.found_bins[i], x, kHeight - height(v.expected_bins[i]), step * 0.9,
        height(v.expected_bins[i]), kFloatColour, x + step * 0.25, kHeight - height(v.found_bins[i]), step * 0.4,
        height(v.found_bins[i]), kBuiltColour);
  }
  return svg +
         fmt::format(
             "<text x=\"0\" y=\"{0}\">{1:.4g}</text><text x=\"{2}\" y=\"{0}\" text-anchor=\"end\">{3:.4g}</text></svg><p "
             "class=\"key note\"><span style=\"background:{4}\"></span>float<span style=\"background:{5}\"></span>built model"
             "; heights are logarithmic</p>",
             kHeight + 14, v.low, kHistogramWidth, v.high, kFloatColour, kBuiltColour);
}

std::string details(const LayerAccuracy& l, size_t index, bool open) {
  const LayerValues& v = l.values;
  std::string html =
      fmt::format("<details id=\"layer{}\"{}><summary><b class=\"{}\">{}</b> <b class=\"{}\">{}</b> [{}] {}</summary>", index,
                  open ? " open" : "", grade(l.entire), cosine_text(l.entire), grade(l.single), cosine_text(l.single),
                  html_escaped(l.type), html_escaped(l.name));
  if (!l.suggestion.empty()) html += "<p class=\"advice\">" + html_escaped(l.suggestion) + "</p>";
  html += "<div class=\"columns\"><div>" + histogram(v) + "</div><div><table>";
  const auto row = [&](std::string_view name, const std::string& value) {
    html += fmt::format("<tr><th>{}<td>{}</tr>", name, value);
  };
  row("computed in", html_escaped(v.dtype));
  row("float values", fmt::format("{:.5g} to {:.5g}", v.low, v.high));
  if (v.scale != 0) {
    row("can say", fmt::format("{:.5g} to {:.5g} in steps of {:.4g}", v.represented_low, v.represented_high, v.scale));
    row("outside of it", fmt::format("{:.3g} %", 100 * v.clipped));
    row("99.9 % are in", fmt::format("{:.0f} % of the range", 100 * v.bulk));
  }
  if (l.entire)
    row("length of the error", fmt::format("{:.5g} whole run, {:.5g} alone", l.entire->euclid, l.single ? l.single->euclid : 0));
  html += "</table>";
  if (!v.worst_channels.empty()) {
    html += fmt::format("<table><tr><th>worst of {} channels<th class=n>error<th>values</tr>", v.channels);
    for (const LayerValues::Channel& c : v.worst_channels)
      html +=
          fmt::format("<tr><td>{}<td class=n>{:.1f} %<td>{:.4g} to {:.4g}</tr>", c.index, 100 * c.relative_error, c.low, c.high);
    html += "</table>";
  }
  return html + "</div></div></details>";
}
}  // namespace

std::string accuracy_html(const AccuracyReport& report) {
  constexpr std::string_view kStyle =
      "b.good,.figures b.good{color:#2e7d46}b.doubtful,.figures b.doubtful{color:#b07800}b.bad,.figures "
      "b.bad{color:#c0392b}summary{cursor:pointer;padding:.15rem 0;overflow-wrap:anywhere}summary "
      "b{font-variant-numeric:tabular-nums;margin-right:.4rem}"
      ".columns{display:flex;flex-wrap:wrap;gap:1rem 2rem;margin:.4rem 0 1.2rem}.columns>div{flex:1 1 460px}.columns "
      "table{margin-bottom:.6rem}.columns th{font-weight:500;color:#666;width:11rem}"
      ".advice{background:#f3f6fa;border-left:3px solid #2f6fb2;padding:.4rem .8rem;margin:.4rem "
      "0}details[open]>summary{font-weight:500}details:target{outline:2px solid #d9822b;outline-offset:4px}";
  // Layers that lose accuracy themselves, worst first.
  std::vector<const LayerAccuracy*> bad;
  size_t compared = 0, doubtful = 0;
  const LayerAccuracy* worst = report.worst_output();
  for (const LayerAccuracy& l : report.layers) {
    if (l.fused || !l.entire || !l.single) continue;
    ++compared;
    if (grade(l.entire) != "good") ++doubtful;
    if (grade(l.single) != "good") bad.push_back(&l);
  }
  const auto loss = [](const LayerAccuracy* l) { return l->single->word.empty() ? 1 - l->single->cosine : 2; };
  std::stable_sort(bad.begin(), bad.end(), [&](const LayerAccuracy* a, const LayerAccuracy* b) { return loss(a) > loss(b); });

  std::string html = html_head("Accuracy of " + report.model, kStyle);
  html += fmt::format(
      "<div class=\"figures\"><div><b>{}</b>number format</div><div><b>{}</b>platform</div><div><b class=\"{}\">{}</b>cosine of "
      "{}</div><div><b>{}</b>layers compared</div>"
      "<div><b>{}</b>off in the whole run</div><div><b>{}</b>lose accuracy themselves</div></div>",
      html_escaped(report.number_format), html_escaped(report.platform), worst ? grade(worst->entire) : "",
      worst ? cosine_text(worst->entire) : "", worst ? "the worst output, " + html_escaped(worst->name) : "no output", compared,
      doubtful, bad.size());
  html += "<h2>Error of every layer</h2>" + error_plot(report);
  html += "<h2>What to do</h2>";
  if (bad.empty()) {
    const auto passing =
        std::find_if(report.layers.begin(), report.layers.end(), [](const LayerAccuracy& l) { return !l.suggestion.empty(); });
    html += "<p>" +
            (passing == report.layers.end() ? std::string("Nothing: every layer is close to the float model on this sample.")
                                            : html_escaped(passing->suggestion)) +
            "</p>";
  } else {
    constexpr size_t kListed = 12;
    html += "<p>These layers lose accuracy themselves, worst first. Mending one often mends those downstream.</p><ol>";
    for (size_t i = 0; i < std::min(bad.size(), kListed); ++i)
      html += fmt::format("<li><a href=\"#layer{}\">{}</a> ({}): {}</li>", bad[i] - report.layers.data(),
                          html_escaped(bad[i]->name), cosine_text(bad[i]->single), html_escaped(bad[i]->suggestion));
    html += "</ol>";
    if (bad.size() > kListed) html += fmt::format("<p class=\"note\">and {} more below</p>", bad.size() - kListed);
  }
  html += "<h2>Layers</h2><p class=\"note\">cosine in the whole run, cosine of the layer alone, operator, output tensor</p>";
  for (const LayerAccuracy& l : report.layers)
    if (!l.fused && l.entire) html += details(l, static_cast<size_t>(&l - report.layers.data()), !bad.empty() && &l == bad[0]);
  html +=
      "<script>const show=()=>{const "
      "d=document.getElementById(location.hash.slice(1));if(d){d.open=true;d.scrollIntoView()}};addEventListener('hashchange',"
      "show);show()</script>";
  return html + "</html>\n";
}

}  // namespace orknn::toolkit
