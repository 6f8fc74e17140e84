#include "tools/trace_picture.hpp"

#include "netem/trace_statistics.hpp"
#include "tools/svg_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace shoal::tools {

namespace {

using netem::session;

constexpr std::size_t most_svg_rows = 400;

/// At most `most` peers, evenly spaced.
std::vector<const netem::trace::peer*> chosen(const netem::trace& what, std::size_t most) {
  std::vector<const netem::trace::peer*> out;
  const auto& all = what.peers();
  const std::size_t rows = std::min(most, all.size());
  for (std::size_t i = 0; i < rows; ++i) out.push_back(&all[i * all.size() / rows]);
  return out;
}

/// The part of [from, to) in which the peer is present. `at` is the peer's first session that may
/// overlap, and advances.
double presence(const std::vector<session>& sessions, std::size_t& at, double from, double to) {
  double there = 0;
  while (at < sessions.size() && sessions[at].end != netem::forever &&
         to_seconds(sessions[at].end) <= from)
    ++at;
  for (std::size_t i = at; i < sessions.size() && to_seconds(sessions[i].start) < to; ++i) {
    const double end = sessions[i].end == netem::forever ? to : to_seconds(sessions[i].end);
    there += std::max(0.0, std::min(end, to) - std::max(to_seconds(sessions[i].start), from));
  }
  return there / (to - from);
}

/// Mean number of peers in each of `columns` slices of the time.
std::vector<double> live_means(const netem::trace& what, std::size_t columns) {
  std::vector<double> out(columns, 0);
  const double width = to_seconds(what.end()) / static_cast<double>(columns);
  for (const auto& peer : what.peers()) {
    std::size_t at = 0;
    for (std::size_t i = 0; i < columns; ++i)
      out[i] += presence(*peer.sessions, at, width * static_cast<double>(i),
                         width * static_cast<double>(i + 1));
  }
  return out;
}

/// A round step with at most eight ticks.
double tick(double span) {
  constexpr double steps[] = {1,        5,        15,        60,    300,       900,         3600,
                              3 * 3600, 6 * 3600, 12 * 3600, 86400, 7 * 86400, 30 * 86400.0};
  for (const double step : steps)
    if (span / step <= 8) return step;
  return std::ceil(span / 8 / 86400) * 86400;
}

/// A label to the second; for a short trace to the millisecond.
std::string time_label(double seconds) {
  return seconds == 0 ? "0"
                      : to_string(from_seconds(seconds >= 10 ? std::round(seconds)
                                                             : std::round(seconds * 1e3) / 1e3));
}

} // namespace

std::string text_picture(const netem::trace& what, std::size_t columns) {
  if (what.end() == duration::zero() || what.peers().empty()) return "";
  constexpr const char* bars[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr const char* shades[] = {"·", "░", "▒", "▓", "█"};
  constexpr std::size_t height = 6;
  const auto rows = chosen(what, most_picture_rows);
  std::size_t label = 4;
  for (const auto* peer : rows)
    label = std::max(label, std::min<std::size_t>(peer->name.size(), 16));
  const std::size_t width =
      std::max<std::size_t>(columns > label + 2 ? columns - label - 2 : 10, 10);
  const auto live = live_means(what, width);
  const double top = std::max(1.0, *std::max_element(live.begin(), live.end()));

  std::string out;
  for (std::size_t row = height; row-- > 0;) {
    out += fmt::format("{:>{}} ",
                       row + 1 == height ? fmt::format("{:.0f}", top)
                       : row == 0        ? "live"
                                         : "",
                       label);
    for (const double value : live) {
      const double eighths = value / top * 8 * height - 8 * static_cast<double>(row);
      out += bars[static_cast<std::size_t>(std::clamp(std::ceil(eighths), 0.0, 8.0))];
    }
    out += '\n';
  }
  const double slice = to_seconds(what.end()) / static_cast<double>(width);
  for (const auto* peer : rows) {
    std::string name = peer->name.substr(0, 16);
    for (char& c : name)
      c = static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) < 0x7f ? c : '?';
    out += fmt::format("{:>{}} ", name, label);
    std::size_t at = 0;
    for (std::size_t i = 0; i < width; ++i) {
      const double there = presence(*peer->sessions, at, slice * static_cast<double>(i),
                                    slice * static_cast<double>(i + 1));
      out +=
          shades[there <= 0 ? 0
                            : static_cast<std::size_t>(std::clamp(std::ceil(there * 4), 1.0, 4.0))];
    }
    out += '\n';
  }
  if (rows.size() < what.peers().size())
    out += fmt::format("{:>{}} {} of {} peers\n", "", label, rows.size(), what.peers().size());
  const std::string end = time_label(to_seconds(what.end()));
  out += fmt::format("{:>{}} 0{:>{}}\n", "", label, end, width - 1);
  return out;
}

std::string svg_picture(const netem::trace& what, const std::string& title) {
  constexpr double left = 120, plot = 840, band = 140, gap = 28, head = 36;
  const auto rows = chosen(what, most_svg_rows);
  const double row = rows.size() > 60 ? 8 : 14;
  const double body = head + band + gap, bottom = body + row * static_cast<double>(rows.size());
  const double span = std::max(to_seconds(what.end()), 1e-9);
  const auto x = [&](double seconds) { return left + plot * std::clamp(seconds / span, 0.0, 1.0); };
  std::string out =
      fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" "
                  "font-family=\"sans-serif\" font-size=\"11\">\n"
                  "<title>{}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
                  "<text x=\"{}\" y=\"20\" font-size=\"14\">{}</text>\n",
                  left + plot + 40, bottom + 36, svg_text(title), left, svg_text(title));
  for (double t = 0; t <= span; t += tick(span))
    out += fmt::format("<path d=\"M{0:.1f} {1:.0f}V{2:.0f}\" stroke=\"#ddd\"/><text x=\"{0:.1f}\" "
                       "y=\"{3:.0f}\" text-anchor=\"middle\">{4}</text>\n",
                       x(t), head, bottom, bottom + 16, time_label(t));

  const auto counts = netem::live_counts(what);
  std::int64_t most = 1;
  for (const auto& [when, live] : counts) most = std::max(most, live);
  const auto y = [&](std::int64_t live) {
    return head + band * (1 - static_cast<double>(live) / static_cast<double>(most));
  };
  std::string path = fmt::format("M{:.2f} {:.2f}", x(0), y(0));
  for (const auto& [when, live] : counts)
    path += fmt::format("H{:.2f}V{:.2f}", x(to_seconds(when)), y(live));
  out += fmt::format("<path d=\"{}H{:.2f}V{:.2f}Z\" fill=\"#cfe3f5\" stroke=\"#1f6fb2\"/>\n", path,
                     x(span), y(0));
  out += fmt::format("<text x=\"{}\" y=\"{:.0f}\" text-anchor=\"end\">{} live</text><text x=\"{}\" "
                     "y=\"{:.0f}\" text-anchor=\"end\">0</text>\n",
                     left - 6, head + 4, most, left - 6, head + band + 4);

  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double at = body + row * static_cast<double>(i);
    if (row > 8 || i % 2 == 0)
      out += fmt::format(
          "<text x=\"{}\" y=\"{:.0f}\" text-anchor=\"end\" font-size=\"{:.0f}\">{}</text>\n",
          left - 6, at + row - 2, row > 8 ? 10.0 : 8.0, svg_text(rows[i]->name.substr(0, 18)));
    for (const session& s : *rows[i]->sessions) {
      const double from = x(to_seconds(s.start)),
                   to = s.end == netem::forever ? x(span) : x(to_seconds(s.end));
      out += fmt::format(
          "<rect x=\"{:.2f}\" y=\"{:.0f}\" width=\"{:.2f}\" height=\"{:.0f}\" fill=\"#1f6fb2\"/>\n",
          from, at + 1, std::max(to - from, 0.3), row - 2);
    }
  }
  if (rows.size() < what.peers().size())
    out += fmt::format("<text x=\"{}\" y=\"{:.0f}\">{} of {} peers</text>\n", left, bottom + 30,
                       rows.size(), what.peers().size());
  return out + "</svg>\n";
}

} // namespace shoal::tools
