#include "actors/pipeline/observations.hpp"

#include "actors/data/sample_ranges.hpp"

#include <fmt/format.h>

#include <array>
#include <iterator>

namespace shoal::actors {

std::string gradient_counted::logged_fields() const {
  return fmt::format(R"("epoch":{},"stage":{},"hop":{},"trainer":"{:x}","number":{},"samples":{})",
                     epoch, stage, hop, pass.trainer, pass.number, samples);
}

std::string stage_stepped::logged_fields() const {
  return fmt::format(
      R"("stage":{},"epoch":{},"state":"{}","group":"{}","own":{},"members":{},"counted":{})",
      stage, epoch, after.hex(), group.hex(), own, members, counted);
}

std::string stage_joined::logged_fields() const {
  return fmt::format(R"("stage":{},"epoch":{},"bytes":{})", stage, epoch, bytes);
}

std::string stage_lost::logged_fields() const {
  return fmt::format(R"("stage":{},"epoch":{})", stage, epoch);
}

std::string stage_left::logged_fields() const {
  return fmt::format(R"("from":{},"to":{})", from, to);
}

std::string stage_worked::logged_fields() const {
  return fmt::format(R"("stage":{},"over_ns":{},"computed_ns":{})", stage, over.count(),
                     computed.count());
}

std::string gradients_dropped::logged_fields() const {
  return fmt::format(R"("stage":{},"epoch":{},"samples":{})", stage, epoch, samples);
}

std::string_view to_string(task_failure why) noexcept {
  constexpr std::array<std::string_view, task_failures> names{
      "peer_gone",  "silent",    "other_epoch",   "other_stage", "bad_values",
      "queue_full", "not_ready", "gradient_gone", "banned"};
  return names[static_cast<std::size_t>(why)];
}

std::string batch_stepped::logged_fields() const {
  return fmt::format(R"("epoch":{},"group":"{}","samples":{},"hops":{},"of":{})", epoch,
                     group.hex(), index_count(samples), hops_included, hops_total);
}

std::string stage_task_failed::logged_fields() const {
  return fmt::format(R"("stage":{},"hop":{},"backward":{},"number":{},"why":"{}")", stage, hop,
                     backward, number, to_string(why));
}

std::string_view to_string(audit_end how) noexcept {
  constexpr std::array<std::string_view, audit_ends> names{"right", "wrong", "disputed",
                                                           "unfinished"};
  return names[static_cast<std::size_t>(how)];
}

std::string stage_audited::logged_fields() const {
  return fmt::format(
      R"("epoch":{},"stage":{},"hop":{},"backward":{},"number":{},"opinions":{},"how":"{}","peer":"{:x}")",
      epoch, stage, hop, backward, number, opinions, to_string(how), peer);
}

std::string batch_trained::logged_fields() const {
  return fmt::format(R"("epoch":{},"samples":{},"loss_sum":{},"repeated":{},"dropped":{})", epoch,
                     samples, loss_sum, repeated, dropped);
}

std::string slowest_micro_batch::logged_fields() const {
  auto out =
      fmt::format(R"("epoch":{},"number":{},"samples":{},"begun_ns":{},"done_ns":{},"tasks":[)",
                  epoch, number, samples, begun.count(), done.count());
  for (const auto& one : tasks)
    fmt::format_to(
        std::back_inserter(out),
        R"({}{{"hop":{},"stage":{},"backward":{},"peer":"{:x}","sent_ns":{},"answered_ns":{},"computed_ns":{},"tries":{}}})",
        &one == &tasks.front() ? "" : ",", one.hop, one.stage, one.backward, one.peer,
        one.sent.count(), one.answered.count(), one.computed.count(), one.tries);
  return out + "]";
}

std::string batch_reopened::logged_fields() const {
  return fmt::format(R"("epoch":{},"hops":{})", epoch, hops);
}

} // namespace shoal::actors
