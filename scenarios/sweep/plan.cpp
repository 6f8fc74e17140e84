#include "scenarios/sweep/plan.hpp"

#include "kernels/base/digest.hpp"
#include "kernels/base/text_fields.hpp"
#include "scenarios/observe/output_text.hpp"
#include "scenarios/programs/program.hpp"
#include "scenarios/schema/document.hpp"
#include "scenarios/schema/load.hpp"
#include "scenarios/schema/option_diff.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace shoal::scenarios {

namespace {

std::string said(const varied& what) {
  return fmt::format("{}={}", what.path, fmt::join(what.values, ","));
}

std::string quoted_list(const std::vector<std::string>& texts) {
  std::vector<std::string> out;
  for (const auto& text : texts) out.push_back(json_quoted(text));
  return fmt::format("[{}]", fmt::join(out, ", "));
}

/// Errors: the key is missing or no text.
result<std::string> text_at(const node& in, std::string_view key) {
  const auto* found = in.find(key);
  if (found == nullptr || found->value->kind != node_kind::scalar)
    return failure{fmt::format("'{}' is missing", key)};
  return found->value->text;
}

/// Errors: the value is no list of single values.
result<std::vector<std::string>> texts_at(const node& in, std::string_view key) {
  const auto* found = in.find(key);
  if (found == nullptr || found->value->kind != node_kind::sequence)
    return failure{fmt::format("'{}' is missing", key)};
  std::vector<std::string> out;
  for (const auto& item : found->value->items) {
    if (item->kind != node_kind::scalar)
      return failure{fmt::format("'{}' has an item that is no single value", key)};
    out.push_back(item->text);
  }
  return out;
}

std::string or_nothing(const std::optional<std::string>& text) {
  return text.value_or("nothing");
}

} // namespace

std::size_t sweep_plan::points() const {
  std::size_t out = 1;
  for (const auto& each : vary) out *= each.values.size();
  return out;
}

std::vector<std::size_t> sweep_plan::choices(std::size_t point) const {
  std::vector<std::size_t> out(vary.size());
  for (std::size_t i = vary.size(); i-- > 0;) {
    out[i] = point % vary[i].values.size();
    point /= vary[i].values.size();
  }
  return out;
}

std::vector<std::string> sweep_plan::sets_of(std::size_t point) const {
  auto out = sets;
  const auto chosen = choices(point);
  for (std::size_t i = 0; i < vary.size(); ++i)
    out.push_back(vary[i].path + "=" + vary[i].values[chosen[i]]);
  return out;
}

std::string sweep_plan::label_of(std::size_t point) const {
  const auto all = sets_of(point);
  return fmt::format(
      "{}", fmt::join(all.begin() + static_cast<std::ptrdiff_t>(sets.size()), all.end(), " "));
}

std::string cell_name(const sweep_plan& plan, std::size_t cell) {
  return fmt::format("{:0{}}", cell, std::to_string(plan.cells() - 1).size());
}

result<void> check_grid(const sweep_plan& plan) {
  std::set<std::string> paths;
  std::size_t cells = std::max<std::size_t>(plan.seeds.size(), 1);
  for (const auto& each : plan.vary) {
    if (each.path == "seed") return failure{"--vary seed: seeds are given by --seeds"};
    if (!paths.insert(each.path).second)
      return failure{fmt::format("--vary {} is there twice", each.path)};
    for (const auto& set : plan.sets)
      if (set.starts_with(each.path + "="))
        return failure{fmt::format("{} is both varied and set", each.path)};
    cells *= each.values.size();
    if (cells > most_cells)
      return failure{fmt::format(
          "the grid has more than {} cells; vary less, or by fewer values or seeds", most_cells)};
  }
  if (plan.vary.empty() && plan.seeds.size() < 2)
    return failure{"there is nothing to sweep: give --vary PATH=VALUES, or several --seeds"};
  return {};
}

checked_plan check_points(const sweep_plan& plan) {
  checked_plan out;
  hasher all;
  for (std::size_t point = 0; point < plan.points(); ++point) {
    auto sets = plan.sets_of(point);
    const auto varied_end = sets.size();
    if (!plan.seeds.empty()) sets.push_back(fmt::format("seed={}", plan.seeds.front()));
    auto loaded = load(plan.scenario, sets);
    // The message names the argument as the user typed it.
    const auto as_varied = [&](diagnostic& what) {
      for (std::size_t i = plan.sets.size(); i < varied_end; ++i)
        if (what.file == "--set " + sets[i]) what.file = "--vary " + sets[i];
    };
    for (auto& warning : loaded.warnings) {
      as_varied(warning);
      if (std::find(out.warnings.begin(), out.warnings.end(), warning) == out.warnings.end())
        out.warnings.push_back(std::move(warning));
    }
    if (loaded.value && !loaded.value->program.definition().on_runner()) {
      diagnostic wrong;
      wrong.file = plan.scenario;
      wrong.message = fmt::format("this is {}; a sweep is of training runs",
                                  loaded.value->program.definition().title);
      loaded.errors.push_back(std::move(wrong));
    } else if (loaded.value && loaded.value->world == "cluster") {
      diagnostic wrong;
      wrong.file = plan.scenario;
      wrong.message = "the world is 'cluster', one process for each host; a sweep runs each cell "
                      "in one process: --set world=sim";
      loaded.errors.push_back(std::move(wrong));
    }
    if (!loaded.errors.empty()) {
      for (auto& error : loaded.errors) as_varied(error);
      out.errors = std::move(loaded.errors);
      out.wrong_point = point;
      return out;
    }
    const auto resolved = to_yaml(*loaded.value);
    all.add(std::string_view(resolved));
    if (loaded.value->expect.contains("loss.baseline")) out.expects_baseline = true;
    if (point > 0) continue;
    out.first_scenario = resolved;
    out.name = loaded.value->name;
    out.world = loaded.value->world;
    out.seed = loaded.value->seed;
  }
  out.digest = all.finish().hex();
  return out;
}

std::string to_yaml(const sweep_plan& plan) {
  std::string out = "# The plan of a sweep, written by 'shoal sweep'; 'shoal sweep --out' with "
                    "this folder goes on with it.\n";
  out += fmt::format("shoal: {}\nscenario: {}\ndigest: {}\nset: {}\n", json_quoted(plan.build),
                     json_quoted(plan.scenario), plan.digest, quoted_list(plan.sets));
  out += plan.vary.empty() ? "vary: []\n" : "vary:\n";
  for (const auto& each : plan.vary)
    out += fmt::format("  - {{path: {}, values: {}}}\n", json_quoted(each.path),
                       quoted_list(each.values));
  return out + fmt::format("seeds: [{}]\nmetrics: {}\n", fmt::join(plan.seeds, ", "),
                           quoted_list(plan.metrics));
}

result<sweep_plan> read_plan(std::string_view yaml) {
  const auto doc = parse_document(yaml);
  if (!doc.root || doc.root->kind != node_kind::mapping)
    return failure{doc.problems.empty() ? "it is no mapping" : doc.problems.front().message};
  sweep_plan out;
  for (const auto& [key, into] :
       {std::pair{"shoal", &out.build}, {"scenario", &out.scenario}, {"digest", &out.digest}}) {
    auto text = text_at(*doc.root, key);
    if (!text) return failure{text.error()};
    *into = std::move(*text);
  }
  for (const auto& [key, into] : {std::pair{"set", &out.sets}, {"metrics", &out.metrics}}) {
    auto texts = texts_at(*doc.root, key);
    if (!texts) return failure{texts.error()};
    *into = std::move(*texts);
  }
  const auto* vary = doc.root->find("vary");
  if (vary == nullptr || vary->value->kind != node_kind::sequence)
    return failure{"'vary' is missing"};
  for (const auto& item : vary->value->items) {
    auto path = text_at(*item, "path");
    auto values = texts_at(*item, "values");
    if (!path) return failure{path.error()};
    if (!values || values->empty()) return failure{"'values' are missing"};
    out.vary.push_back({std::move(*path), std::move(*values)});
  }
  const auto seeds = texts_at(*doc.root, "seeds");
  if (!seeds || seeds->empty()) return failure{"'seeds' are missing"};
  for (const auto& text : *seeds) {
    const auto seed = number_of<std::uint64_t>(text);
    if (!seed) return failure{fmt::format("'{}' is no seed", text)};
    out.seeds.push_back(*seed);
  }
  if (auto sound = check_grid(out); !sound) return failure{sound.error()};
  return out;
}

std::optional<std::string> difference(const sweep_plan& recorded,
                                      const std::string& recorded_scenario, const sweep_plan& now,
                                      const std::string& scenario) {
  const auto were = [](const std::string& what, const std::string& then, const std::string& here) {
    return fmt::format("{} was {} and is now {}", what, then, here);
  };
  if (recorded.scenario != now.scenario)
    return were("the scenario", recorded.scenario, now.scenario);
  if (recorded.sets != now.sets)
    return were("--set", quoted_list(recorded.sets), quoted_list(now.sets));
  for (std::size_t i = 0; i < std::max(recorded.vary.size(), now.vary.size()); ++i) {
    const auto of = [i](const sweep_plan& plan) {
      return i < plan.vary.size() ? said(plan.vary[i]) : std::string("nothing");
    };
    if (of(recorded) != of(now)) return were("--vary", of(recorded), of(now));
  }
  if (recorded.seeds != now.seeds)
    return were("--seeds", fmt::format("{}", fmt::join(recorded.seeds, ",")),
                fmt::format("{}", fmt::join(now.seeds, ",")));
  if (recorded.digest == now.digest) return std::nullopt;
  const auto options = diff_options(parse_document(recorded_scenario), parse_document(scenario));
  if (options.empty()) return fmt::format("{} has changed since", now.scenario);
  return fmt::format(
      "{} has changed since: {}", now.scenario,
      were(options.front().path, or_nothing(options.front().a), or_nothing(options.front().b)));
}

} // namespace shoal::scenarios
