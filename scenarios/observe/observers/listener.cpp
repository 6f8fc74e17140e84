#include "actors/averaging/observations.hpp"
#include "actors/experts/observations.hpp"
#include "actors/pipeline/observations.hpp"
#include "actors/reasons.hpp"
#include "actors/training/observations.hpp"
#include "scenarios/observe/observers/all.hpp"
#include "scenarios/observe/output_text.hpp"

namespace shoal::scenarios::observing {

namespace {

class listener_observer final : public run_observer {
public:
  explicit listener_observer(run_listener& to) : to_(to) {}

  void on_observation(const seen_observation& seen) override {
    if (const auto* x = actors::get_if<actors::round_ended>(&seen.what))
      to_.round_ended(seen.time, {seen.host, x->group.hex(), x->epoch,
                                  actors::to_string(x->outcome), actors::to_string(x->reason)});
    else if (const auto* joined = actors::get_if<actors::stage_joined>(&seen.what))
      to_.stage_held(seen.time, seen.host, joined->stage);
    else if (actors::holds_alternative<actors::stage_left>(seen.what))
      to_.stage_held(seen.time, seen.host, std::nullopt);
    else if (const auto* worked = actors::get_if<actors::stage_worked>(&seen.what))
      to_.stage_worked(seen.time, {seen.host, worked->stage, worked->over, worked->computed});
    else
      tell_of_experts(seen);
  }
  void on_peer_started(const seen_peer& seen) override { to_.host_started(seen.time, seen.host); }
  void on_peer_left(const seen_peer& seen) override {
    to_.host_ended(seen.time, seen.host, seen.reason);
  }
  void on_round(const swarm_round& what) override {
    if (!what.unfinished)
      to_.round({what.group.hex(), what.epoch, what.started, what.ended, what.members.size(),
                 actors::to_string(what.outcome), actors::to_string(what.reason), what.first_of_two,
                 samples_included(what)});
  }
  void on_fault(const seen_fault& fault) override {
    to_.fault(fault.time, fault.number, fault.action, fault.begins, fault.hosts);
  }

private:
  void tell_of_experts(const seen_observation& seen) {
    using news = heard_expert::news;
    const auto tell = [&](news what, const actors::expert_id& which, std::uint64_t steps,
                          bool revived = false, std::uint64_t requests = 0,
                          std::uint64_t rows = 0) {
      const auto name = to_text(which);
      to_.expert(seen.time, {what, seen.host, name, steps, revived, requests, rows});
    };
    if (const auto* batch = actors::get_if<actors::expert_batch_done>(&seen.what))
      tell(news::computed, batch->which, batch->steps, false, batch->requests, batch->rows);
    else if (const auto* held = actors::get_if<actors::expert_held>(&seen.what))
      tell(news::held, held->which, held->steps, held->revived);
    else if (const auto* lost = actors::get_if<actors::expert_given_up>(&seen.what))
      tell(news::given_up, lost->which, lost->steps);
    else if (const auto* sent = actors::get_if<actors::experts_copied>(&seen.what))
      for (const auto& each : sent->copies) tell(news::copied, each.which, each.steps);
  }

  run_listener& to_;
};

class phases_observer final : public run_observer {
public:
  explicit phases_observer(run_listener& to) : to_(to) {}

  void on_observation(const seen_observation& seen) override {
    if (const auto* x = actors::get_if<actors::phase_changed>(&seen.what))
      to_.phase(seen.time, seen.host, phase_name(x->phase));
  }

private:
  run_listener& to_;
};

template <class Observer>
std::unique_ptr<run_observer> telling(const run_books& books) {
  if (books.options.listener == nullptr) return nullptr;
  return std::make_unique<Observer>(*books.options.listener);
}

} // namespace

result<std::unique_ptr<run_observer>> listener(run_books& books) {
  return telling<listener_observer>(books);
}

result<std::unique_ptr<run_observer>> phases(run_books& books) {
  return telling<phases_observer>(books);
}

} // namespace shoal::scenarios::observing
