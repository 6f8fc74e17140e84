#include "kernels/learn/entity_score.hpp"

#include <algorithm>
#include <tuple>

namespace shoal::learn {

namespace {

struct parsed_tag {
  char prefix = 'O';
  std::string_view type;
};

parsed_tag parse(std::string_view tag) {
  if (tag.empty()) return {};
  const auto dash = tag.find('-');
  return {tag.front(), dash == std::string_view::npos ? "_" : tag.substr(dash + 1)};
}

bool one_of(char c, std::string_view set) {
  return set.find(c) != std::string_view::npos;
}

bool ends_between(const parsed_tag& before, const parsed_tag& now) {
  if (one_of(before.prefix, "ESLU")) return true;
  if (one_of(before.prefix, "BI") && one_of(now.prefix, "BSUO")) return true;
  return before.prefix != 'O' && before.prefix != '.' && before.type != now.type;
}

bool starts_between(const parsed_tag& before, const parsed_tag& now) {
  if (one_of(now.prefix, "BSU")) return true;
  if (one_of(before.prefix, "ESLUO") && one_of(now.prefix, "EIL")) return true;
  return now.prefix != 'O' && now.prefix != '.' && before.type != now.type;
}

double ratio(std::size_t a, std::size_t b) {
  return b == 0 ? 0 : static_cast<double>(a) / static_cast<double>(b);
}

} // namespace

std::vector<entity> entities_in(const tag_sequence& tags) {
  std::vector<entity> out;
  parsed_tag before{'O', ""};
  std::size_t first = 0;
  for (std::size_t i = 0; i <= tags.size(); ++i) {
    const auto now = i < tags.size() ? parse(tags[i]) : parsed_tag{'O', "_"};
    if (before.prefix != 'O' && ends_between(before, now))
      out.push_back({std::string(before.type), first, i - 1});
    if (starts_between(before, now)) first = i;
    before = now;
  }
  return out;
}

double entity_counts::precision() const noexcept {
  return ratio(right, predicted);
}
double entity_counts::recall() const noexcept {
  return ratio(right, wanted);
}
double entity_counts::f1() const noexcept {
  return ratio(2 * right, predicted + wanted);
}

result<entity_score> score_entities(std::span<const tag_sequence> wanted,
                                    std::span<const tag_sequence> predicted) {
  if (wanted.size() != predicted.size())
    return failure{"entities: there are " + std::to_string(predicted.size()) +
                   " predicted sentences for " + std::to_string(wanted.size())};
  entity_score out;
  for (std::size_t s = 0; s < wanted.size(); ++s) {
    if (wanted[s].size() != predicted[s].size())
      return failure{"entities: sentence " + std::to_string(s) + " has " +
                     std::to_string(predicted[s].size()) + " predicted tags for " +
                     std::to_string(wanted[s].size())};
    const auto there = entities_in(wanted[s]), found = entities_in(predicted[s]);
    const auto count = [&](const entity& one, std::size_t entity_counts::*what) {
      ++(out.all.*what);
      ++(out.by_type[one.type].*what);
    };
    for (const auto& one : there) count(one, &entity_counts::wanted);
    for (const auto& one : found) {
      count(one, &entity_counts::predicted);
      if (std::binary_search(there.begin(), there.end(), one, [](const entity& a, const entity& b) {
            return std::tie(a.first, a.last, a.type) < std::tie(b.first, b.last, b.type);
          }))
        count(one, &entity_counts::right);
    }
  }
  return out;
}

} // namespace shoal::learn
