#include "scenarios/observe/transfer_log.hpp"

#include "scenarios/observe/output_text.hpp"

#include <fmt/format.h>

#include <iterator>

namespace shoal::scenarios {

transfer_log::transfer_log(std::unique_ptr<output_file> file, std::uint64_t most, host_names& names,
                           link_names links)
    : lines_(std::move(file)), left_(most), names_(names), links_(std::move(links)) {}

void transfer_log::on_transfer(const netem::transfer_record& what) {
  if (left_ == 0) return;
  --left_;
  std::string out;
  auto into = std::back_inserter(out);
  fmt::format_to(
      into,
      R"({{"transfer":{},"from":{},"to":{},"type":{},"bytes":{},"sent_ns":{},"begun_ns":{},"left_ns":{},"arrives_ns":{},"round_trip_ns":{},"cut":{},"steps":[)",
      what.number, json_quoted(names_.actor(what.from)), json_quoted(names_.actor(what.to)),
      json_quoted(what.type), what.bytes, what.sent.count(), what.begun.count(), what.left.count(),
      what.arrives.count(), what.round_trip.count(), what.cut);
  bool first = true;
  for (const netem::transfer_step& step : what.steps) {
    fmt::format_to(into, R"({}[{},{:.0f},"{}")", first ? "" : ",", step.at.count(),
                   step.bits_per_second, netem::name_of(step.why));
    if (step.why == netem::rate_limit::link)
      fmt::format_to(into, ",{},{}", json_quoted(links_(step.link)), step.sharers);
    out.push_back(']');
    first = false;
  }
  out += "]}";
  lines_.line(out);
}

} // namespace shoal::scenarios
