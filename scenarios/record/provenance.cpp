#include "scenarios/record/provenance.hpp"

#include "kernels/base/text_fields.hpp"
#include "scenarios/observe/output_text.hpp"
#include "scenarios/record/version.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

namespace shoal::scenarios {

std::string to_text(const std::vector<run_branch>& what) {
  std::string out;
  for (const run_branch& each : what)
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", to_string(each.at), each.seed);
  return out;
}

result<std::vector<run_branch>> parse_branches(std::string_view text) {
  std::vector<run_branch> out;
  while (!text.empty()) {
    const auto comma = std::min(text.find(','), text.size());
    std::string_view one = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    while (one.starts_with(' ')) one.remove_prefix(1);
    const auto space = one.find(' ');
    const auto at = parse_duration(one.substr(0, space));
    if (!at) return failure{at.error()};
    const auto seed =
        number_of<std::uint64_t>(space == one.npos ? std::string_view{} : one.substr(space + 1));
    if (!seed)
      return failure{fmt::format("expected a time and a seed as in '12min 7', not '{}'", one)};
    const run_branch made{*at, *seed};
    if (!out.empty() && made.at < out.back().at)
      return failure{fmt::format("'{}' is before the branch that precedes it", one)};
    out.push_back(made);
  }
  return out;
}

std::string to_yaml(const provenance& what) {
  std::string out = fmt::format("\nx-run: {{shoal: \"{}\"", what.shoal);
  if (!what.build.empty()) out += fmt::format(", build: \"{}\"", what.build);
  out += fmt::format(", data_digest: \"{}\"", what.data_digest);
  if (what.until) out += fmt::format(", until: {}", to_string(*what.until));
  if (what.interrupted) out += ", interrupted: true";
  if (!what.node.empty()) out += fmt::format(", node: \"{}\"", what.node);
  if (what.started_utc_ns) out += fmt::format(", started_utc_ns: {}", *what.started_utc_ns);
  const std::pair<const char*, const std::string*> texts[] = {{"group", &what.group},
                                                              {"address", &what.address},
                                                              {"joins", &what.joins},
                                                              {"invitation", &what.invitation}};
  for (const auto& [name, text] : texts)
    if (!text->empty()) out += fmt::format(", {}: {}", name, json_quoted(*text));
  if (what.insecure) out += ", insecure: true";
  if (!what.branches.empty()) out += fmt::format(", seed_after: \"{}\"", to_text(what.branches));
  return out + "}\n";
}

result<provenance> provenance_of(const document& run_yaml) {
  provenance out;
  const entry* found = run_yaml.root ? run_yaml.root->find("x-run") : nullptr;
  if (found == nullptr || !found->value) return out;
  if (found->value->kind != node_kind::mapping) return failure{"x-run: expected a mapping"};
  const std::map<std::string_view, std::string*> texts{
      {"shoal", &out.shoal}, {"build", &out.build},          {"data_digest", &out.data_digest},
      {"node", &out.node},   {"group", &out.group},          {"address", &out.address},
      {"joins", &out.joins}, {"invitation", &out.invitation}};
  for (const entry& item : found->value->entries) {
    const auto into = texts.find(item.key);
    const bool other = item.key == "until" || item.key == "interrupted" || item.key == "insecure" ||
                       item.key == "started_utc_ns" || item.key == "seed_after";
    if (into == texts.end() && !other) continue;
    // An empty text in quotes counts as no value.
    if (item.value->kind != node_kind::scalar && item.value->kind != node_kind::null)
      return failure{fmt::format("x-run.{}: expected a single value", item.key)};
    const std::string& text = item.value->text;
    if (into != texts.end())
      *into->second = text;
    else if (item.key == "insecure")
      out.insecure = text == "true";
    else if (item.key == "seed_after") {
      auto branches = parse_branches(text);
      if (!branches) return failure{fmt::format("x-run.seed_after: {}", branches.error())};
      out.branches = std::move(*branches);
    } else if (item.key == "started_utc_ns") {
      const auto value = number_of<std::int64_t>(text);
      if (!value)
        return failure{
            fmt::format("x-run.started_utc_ns: expected a whole number, not '{}'", text)};
      out.started_utc_ns = *value;
    } else if (item.key == "interrupted")
      out.interrupted = text == "true";
    else if (auto until = parse_duration(text))
      out.until = *until;
    else
      return failure{fmt::format("x-run.until: {}", until.error())};
  }
  return out;
}

std::optional<std::string> data_differ(const provenance& a, std::string_view name_a,
                                       const provenance& b, std::string_view name_b) {
  if (a.data_digest == b.data_digest) return std::nullopt;
  if (!a.data_digest.empty() && !b.data_digest.empty())
    return fmt::format("{} and {} had different training data (x-run.data_digest)", name_a, name_b);
  const bool first = b.data_digest.empty();
  return fmt::format("{} trained on data, {} had none: their losses are no measure of each other",
                     first ? name_a : name_b, first ? name_b : name_a);
}

} // namespace shoal::scenarios
