#include "tools/round_picture.hpp"

#include "scenarios/record/run_files.hpp"
#include "tools/svg_chart.hpp"
#include "tools/svg_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace shoal::tools {

namespace {

using scenarios::explained_transfer;
using scenarios::round_explanation;

constexpr double left = 190, plot = 760, right = 30;

struct kind {
  std::string type, words;
  std::size_t colour;
};

/// The message types of a round, in the order of the legend. Other types are drawn like the last
/// one.
const std::vector<kind>& kinds() {
  static const std::vector<kind> all{
      {"part_chunk", "a member's values to the reducer of a part", 0},
      {"reduced_chunk", "the mean of a part back", 1},
      {"state_chunk", "parameters for a joiner", 2},
      {"", "anything else", 3}};
  return all;
}

const kind& kind_of(const std::string& type) {
  const auto& all = kinds();
  for (const kind& each : all)
    if (each.type == type) return each;
  return all.back();
}

struct row {
  std::string from, to;
  std::vector<const explained_transfer*> transfers;
  duration last{};
};

/// One row for each pair, ordered by sender.
std::vector<row> rows_of(const round_explanation& round, std::size_t most) {
  std::map<std::pair<std::string, std::string>, row> pairs;
  for (const explained_transfer& t : round.all) {
    row& at = pairs[{scenarios::machine_of(t.from), scenarios::machine_of(t.to)}];
    at.transfers.push_back(&t);
    at.last = std::max(at.last, t.arrives);
  }
  std::vector<row> out;
  for (auto& [ends, each] : pairs) {
    std::tie(each.from, each.to) = ends;
    out.push_back(std::move(each));
  }
  if (out.size() > most) {
    std::stable_sort(out.begin(), out.end(),
                     [](const row& a, const row& b) { return a.last > b.last; });
    out.resize(most);
    std::stable_sort(out.begin(), out.end(), [](const row& a, const row& b) {
      return std::tie(a.from, a.to) < std::tie(b.from, b.to);
    });
  }
  return out;
}

/// When messages were sent, until they arrived. Times that overlap are joined.
std::vector<std::pair<duration, duration>>
waits_of(const std::vector<const explained_transfer*>& transfers) {
  std::vector<std::pair<duration, duration>> all, out;
  for (const auto* t : transfers) all.emplace_back(t->sent, t->cut ? t->left : t->arrives);
  std::sort(all.begin(), all.end());
  for (const auto& one : all)
    if (!out.empty() && one.first <= out.back().second)
      out.back().second = std::max(out.back().second, one.second);
    else
      out.push_back(one);
  return out;
}

/// Messages of one kind, one after the other on the line.
struct bar {
  const kind* what;
  std::string from, to, type;
  duration begun{}, left{};
  std::uint64_t bytes = 0, pieces = 0;
  bool cut = false;
};

std::vector<bar> bars_of(std::vector<const explained_transfer*> transfers, duration unseen) {
  std::stable_sort(transfers.begin(), transfers.end(),
                   [](const auto* a, const auto* b) { return a->begun < b->begun; });
  std::vector<bar> out;
  for (const auto* t : transfers) {
    const auto* what = &kind_of(t->type);
    const bool goes_on = !out.empty() && out.back().what == what && out.back().from == t->from &&
                         out.back().to == t->to && out.back().type == t->type && !t->cut &&
                         !out.back().cut && t->begun <= out.back().left + unseen;
    if (!goes_on) out.push_back({what, t->from, t->to, t->type, t->begun, t->left, 0, 0, t->cut});
    auto& at = out.back();
    at.left = std::max(at.left, t->left);
    at.bytes += t->bytes;
    ++at.pieces;
  }
  return out;
}

class drawing {
public:
  std::string all(const std::vector<round_explanation>& rounds) {
    at_ = 10;
    legend(rounds);
    std::size_t room = most_round_rows;
    for (const auto& round : rounds) room -= std::min(room, one(round, room));
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" "
        "font-family=\"sans-serif\" font-size=\"11\">\n"
        "<title>{}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{}</svg>\n",
        left + plot + right, at_ + 10,
        svg_text(fmt::format("Round of epoch {}", rounds.empty() ? 0 : rounds[0].epoch)), out_);
  }

private:
  template <class... T>
  void add(fmt::format_string<T...> text, T&&... values) {
    out_ += fmt::format(text, std::forward<T>(values)...) + "\n";
  }

  void legend(const std::vector<round_explanation>& rounds) {
    double x = left;
    for (const kind& each : kinds()) {
      const bool there = std::any_of(rounds.begin(), rounds.end(), [&](const auto& round) {
        return std::any_of(round.all.begin(), round.all.end(),
                           [&](const auto& t) { return &kind_of(t.type) == &each; });
      });
      if (!there) continue;
      add(R"(<rect x="{:.0f}" y="{:.0f}" width="12" height="9" fill="{}"/><text x="{:.0f}" y="{:.0f}">{}</text>)",
          x, at_, chart_colour(each.colour), x + 17, at_ + 9, each.words);
      x += 40 + 5.6 * static_cast<double>(each.words.size());
    }
    add(R"(<path d="M{0:.0f} {1:.0f}h12" stroke="#999"/><text x="{2:.0f}" y="{3:.0f}">waiting, and under way</text>)",
        x, at_ + 5, x + 17, at_ + 9);
    at_ += 16;
  }

  /// Draws one round, and returns its number of rows.
  std::size_t one(const round_explanation& round, std::size_t most) {
    at_ += 22;
    add(R"(<text x="{:.0f}" y="{:.0f}" font-size="14">{}</text>)", left, at_,
        svg_text(fmt::format("Round of epoch {} (group {}): {}{}, {} members, {:.2f} s",
                             round.epoch, round.group.substr(0, 8), round.outcome,
                             round.reason == "none" ? "" : " (" + round.reason + ")",
                             round.members.size(), to_seconds(round.ended - round.started))));
    const auto rows = rows_of(round, most);
    duration end = round.ended;
    for (const row& each : rows) end = std::max(end, each.last);
    const double span = std::max(to_seconds(end - round.started), 1e-9);
    const auto x = [&](duration t) {
      return left + plot * std::clamp(to_seconds(t - round.started) / span, 0.0, 1.0);
    };
    const double height = rows.size() > 100  ? 5
                          : rows.size() > 40 ? 8
                                             : 13,
                 top = at_ + 8, bottom = top + height * static_cast<double>(rows.size());
    for (const double tick : round_ticks(0, span, 8)) {
      const double place = left + plot * tick / span;
      add(R"(<path d="M{0:.1f} {1:.1f}V{2:.1f}" stroke="#ddd"/><text x="{0:.1f}" y="{3:.1f}" text-anchor="middle">{4:g} s</text>)",
          place, top, bottom, bottom + 14, tick);
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const row& each = rows[i];
      const double y = top + height * static_cast<double>(i);
      if (i == 0 || rows[i - 1].from != each.from) {
        std::size_t same = i;
        while (same < rows.size() && rows[same].from == each.from) ++same;
        if (i > 0)
          add(R"(<path d="M{:.0f} {:.1f}H{:.0f}" stroke="#ccc"/>)", left - 180, y, left + plot);
        add(R"(<text x="{:.0f}" y="{:.1f}" font-weight="bold">{}</text>)", left - 180,
            y + std::min(11.0, std::max(height * static_cast<double>(same - i) - 1, 9.0)),
            svg_text(each.from.substr(0, 15)));
      }
      if (height >= 8)
        add(R"(<text x="{:.0f}" y="{:.1f}" text-anchor="end" font-size="{}">to {}</text>)",
            left - 6, y + height - 2.5, height > 8 ? 10 : 7.5, svg_text(each.to.substr(0, 15)));
      for (const auto& [from, to] : waits_of(each.transfers))
        add(R"(<path d="M{:.1f} {:.1f}H{:.1f}" stroke="#999" stroke-width="0.8"/>)", x(from),
            y + height / 2, x(to));
      // Pieces between which no gap can be seen make one bar.
      const auto unseen = from_seconds(span / plot / 2);
      for (const bar& one : bars_of(each.transfers, unseen))
        add(R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" fill="{}"><title>{}</title></rect>)",
            x(one.begun), y + 1, std::max(x(one.left) - x(one.begun), 0.6), height - 2,
            chart_colour(one.what->colour),
            svg_text(fmt::format("{} -> {}: {}, {}{} bytes{}", one.from, one.to, one.type,
                                 one.pieces > 1 ? fmt::format("{} pieces, ", one.pieces) : "",
                                 one.bytes, one.cut ? ", cut off" : "")));
    }
    at_ = bottom + 16;
    std::size_t pairs = rows.size();
    if (rows.size() == most) {
      std::map<std::pair<std::string, std::string>, int> every;
      for (const auto& t : round.all)
        ++every[{scenarios::machine_of(t.from), scenarios::machine_of(t.to)}];
      pairs = every.size();
    }
    if (rows.empty())
      add(R"(<text x="{:.0f}" y="{:.1f}">{}</text>)", left, at_,
          round.transfers == 0 ? "no transfers of bulk"
                               : "there are too many rounds to draw this one");
    else if (pairs > rows.size())
      add(R"(<text x="{:.0f}" y="{:.1f}">the last {} of {} pairs to end</text>)", left, at_ + 12,
          rows.size(), pairs);
    at_ += 14;
    return rows.size();
  }

  std::string out_;
  double at_ = 0;
};

} // namespace

std::string round_picture(const std::vector<round_explanation>& rounds) {
  return drawing{}.all(rounds);
}

} // namespace shoal::tools
