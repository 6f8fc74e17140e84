#include "scenarios/schema/override.hpp"

#include "kernels/base/text_fields.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace shoal::scenarios {
namespace {

std::vector<std::string> split_path(std::string_view path) {
  std::vector<std::string> steps;
  std::size_t start = 0;
  while (true) {
    const std::size_t dot = path.find('.', start);
    steps.emplace_back(path.substr(start, dot - start));
    if (dot == std::string_view::npos) break;
    start = dot + 1;
  }
  if (steps.size() >= 3 && steps[0] == "expect" &&
      (steps.back() == "min" || steps.back() == "max")) {
    std::string metric = steps[1];
    for (std::size_t i = 2; i + 1 < steps.size(); ++i) metric += "." + steps[i];
    steps = {steps[0], metric, steps.back()};
  }
  return steps;
}

/// Parses a --set value. Lists, mappings and quoted text are YAML; any other text is a plain value.
node_ptr parse_value(std::string_view text, int set, std::vector<problem>& problems) {
  if (!text.empty() && std::string_view("[{\"'").find(text.front()) != std::string_view::npos) {
    document parsed = parse_document(text, set);
    for (problem& what : parsed.problems) problems.push_back(std::move(what));
    return parsed.root;
  }
  auto made = std::make_shared<node>();
  made->kind = node_kind::scalar;
  made->where.set = set;
  made->text = text;
  return made;
}

void apply_one(document& doc, const std::string& text, int set) {
  const position here{set, 1, 1, 1};
  const auto fail = [&](std::string message) {
    doc.problems.push_back({here, std::move(message), {}});
  };
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    return fail("expected key=value, for example peers.home.count=8");

  const std::vector<std::string> steps = split_path(std::string_view(text).substr(0, equals));
  if (steps.size() > max_nesting) return fail("the path is too long");
  const node_ptr value = parse_value(std::string_view(text).substr(equals + 1), set, doc.problems);
  if (!value) return;

  node_ptr* place = &doc.root;
  std::string walked;
  for (const std::string& step : steps) {
    if (step.empty()) return fail("an empty step in the path");
    *place = std::make_shared<node>(**place); // copy, because an alias may share the node
    node& at = **place;
    if (at.kind == node_kind::null) {
      const bool number = step.find_first_not_of("0123456789") == std::string::npos;
      at.kind = number ? node_kind::sequence : node_kind::mapping;
    }
    if (at.kind == node_kind::mapping) {
      auto found = std::find_if(at.entries.begin(), at.entries.end(),
                                [&](const entry& item) { return item.key == step; });
      if (found == at.entries.end()) {
        auto fresh = std::make_shared<node>();
        fresh->where = here;
        found = at.entries.insert(at.entries.end(), entry{step, here, std::move(fresh)});
      }
      place = &found->value;
    } else if (at.kind == node_kind::sequence) {
      const auto index = number_of<std::size_t>(step);
      if (!index)
        return fail(
            fmt::format("'{}' is a list: name one of its items by its position, from 0", walked));
      if (*index > at.items.size())
        return fail(fmt::format("{}.{} does not exist: the list has {} items", walked, step,
                                at.items.size()));
      if (*index == at.items.size()) {
        at.items.push_back(std::make_shared<node>());
        at.items.back()->where = here;
      }
      place = &at.items[*index];
    } else {
      return fail(fmt::format("'{}' is a single value and has no '{}'", walked, step));
    }
    walked += (walked.empty() ? "" : ".") + step;
  }
  *place = value;
}

} // namespace

void apply_sets(document& doc, std::span<const std::string> sets) {
  if (!doc.root) return;
  for (std::size_t i = 0; i < sets.size(); ++i) apply_one(doc, sets[i], static_cast<int>(i));
}

} // namespace shoal::scenarios
