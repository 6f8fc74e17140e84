#include "scenarios/schema/aggregator_choice.hpp"

#include "actors/averaging/aggregator.hpp"

#include <algorithm>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

namespace shoal::scenarios {

namespace {

rule rule_of(const actors::aggregator_option& option) {
  return {.above = option.above,
          .at_least = option.at_least,
          .at_most = option.at_most,
          .hide_default = true};
}

} // namespace

void describe(option_visitor& v, aggregator_settings& o) {
  if (o.of == nullptr) return;
  for (const auto& option : o.of->options) {
    double& value = o.chosen.try_emplace(option.name, option.standard).first->second;
    const auto show = [&](auto typed) {
      v.field(option.name.c_str(), typed, option.meaning.c_str(), rule_of(option));
      value = static_cast<double>(typed);
    };
    switch (option.form) {
    case actors::option_form::number:
      show(value);
      break;
    case actors::option_form::count:
      show(static_cast<std::uint64_t>(value));
      break;
    case actors::option_form::flag:
      show(value != 0);
      break;
    }
  }
}

namespace {

kind_definition kind_of(const actors::aggregator_definition& what) {
  kind_definition out{what.name, what.meaning};
  if (what.options.empty()) return out;
  aggregator_settings settings{&what, {}};
  for (const auto& option : what.options) settings.chosen[option.name] = option.standard;
  out.options = options_box::of(std::move(settings));
  return out;
}

} // namespace

kind_list aggregator_kinds() {
  // A program that extends this one registers aggregators when it starts.
  static std::mutex guards;
  static std::deque<kind_definition> kinds;
  static std::vector<const kind_definition*> list;
  std::lock_guard guard(guards);
  for (const auto& each : actors::aggregators().all())
    if (std::none_of(kinds.begin(), kinds.end(),
                     [&](const kind_definition& known) { return known.name == each.name; })) {
      kinds.push_back(kind_of(each));
      list.push_back(&kinds.back());
    }
  return list;
}

aggregator_choice::aggregator_choice() : aggregator_choice(actors::mean_aggregator().name) {}

aggregator_choice::aggregator_choice(const std::string& name) {
  for (const auto* each : aggregator_kinds())
    if (each->name == name) static_cast<choice&>(*this) = choice(*each);
  SHOAL_CHECK(kind != nullptr, "an aggregator of this name");
}

const actors::aggregator_definition& aggregator_choice::definition() const {
  const auto* found = actors::aggregators().find(name());
  SHOAL_CHECK(found != nullptr, "an aggregator of this name");
  return *found;
}

const actors::option_values& aggregator_choice::chosen() const {
  static const actors::option_values none;
  return options.holds<aggregator_settings>() ? options.as<aggregator_settings>().chosen : none;
}

actors::aggregation_setting aggregator_choice::setting(std::uint64_t round_values) const {
  return {&definition().options, chosen(), round_values};
}

} // namespace shoal::scenarios
