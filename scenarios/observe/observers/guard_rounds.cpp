// The Byzantine-tolerant rounds, and guard.jsonl.
#include "actors/averaging/guard_observations.hpp"
#include "actors/trust/verdict.hpp"
#include "scenarios/observe/guard_book.hpp"
#include "scenarios/observe/observers/all.hpp"
#include "scenarios/observe/run_listener.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace shoal::scenarios::observing {

namespace {

std::string kind_name(std::uint8_t kind) {
  return std::string(actors::name_of(static_cast<actors::case_kind>(kind)));
}

class guard_rounds_observer final : public run_observer {
public:
  explicit guard_rounds_observer(run_books& books) : books_(books) {}

  void on_observation(const seen_observation& seen) override {
    if (const auto* x = actors::get_if<actors::committed>(&seen.what)) {
      auto& one = at(x->group);
      one.epoch = x->epoch;
      ++one.committed;
    } else if (const auto* x = actors::get_if<actors::audit_planned>(&seen.what)) {
      at(x->group).audits.push_back({std::string(seen.host), books_.name_of(x->target_peer), {}});
    } else if (const auto* x = actors::get_if<actors::audited>(&seen.what)) {
      auto& one = at(x->group);
      const auto target = books_.name_of(x->target_peer);
      for (auto& each : one.audits)
        if (each.validator == seen.host && each.target == target)
          each.found = x->right ? "right" : "wrong";
      tell(seen.time, one);
    } else if (const auto* x = actors::get_if<actors::accused_member>(&seen.what)) {
      auto& one = at(x->group);
      one.accusations.push_back(
          {books_.name_of(x->accuser_peer), books_.name_of(x->accused_peer), kind_name(x->kind)});
      tell(seen.time, one);
    } else if (const auto* x = actors::get_if<actors::case_decided>(&seen.what)) {
      auto& one = at(x->group);
      const guarded_round::lost_case verdict{books_.name_of(x->culprit_peer), kind_name(x->kind)};
      // Each member holds the verdict.
      if (std::find(one.verdicts.begin(), one.verdicts.end(), verdict) != one.verdicts.end())
        return;
      one.verdicts.push_back(verdict);
      tell(seen.time, one);
    } else if (const auto* x = actors::get_if<actors::distances>(&seen.what)) {
      auto& one = at(x->group);
      // The members report the same ones. The first report is enough.
      if (!one.distances.empty()) return;
      for (std::size_t m = 0; m < x->norms.size() && m < x->peers.size(); ++m)
        if (x->norms[m] >= 0) one.distances.emplace_back(books_.name_of(x->peers[m]), x->norms[m]);
      tell(seen.time, one);
    }
  }

  void flush() override {
    if (file_) file_->flush();
  }
  const std::optional<failure>* error() const override { return file_ ? &file_->error() : &none_; }
  result<void> close() override { return file_ ? file_->commit() : result<void>{}; }

private:
  static constexpr std::size_t most_open = 256;

  guarded_round& at(const actors::group_id& group) {
    const auto [found, fresh] = open_.try_emplace(group);
    if (fresh) {
      found->second.group = group.hex();
      order_.push_back(group);
      if (order_.size() > most_open) {
        open_.erase(order_.front());
        order_.pop_front();
      }
    }
    return found->second;
  }

  void tell(duration time, guarded_round& what) {
    what.at = time;
    if (books_.options.listener != nullptr) books_.options.listener->guarded_round(what);
    if (books_.directory == nullptr) return;
    if (!file_) {
      // Most runs have no guard, and no file.
      auto made = books_.directory->open(guard_file);
      if (!made) {
        if (!none_) none_ = failure{made.error()};
        return;
      }
      file_ = *std::move(made);
    }
    file_->write(to_json(what) + "\n");
  }

  run_books& books_;
  std::map<actors::group_id, guarded_round> open_;
  std::deque<actors::group_id> order_; // oldest first
  std::unique_ptr<output_file> file_;
  std::optional<failure> none_; // the file could not be made
};

} // namespace

result<std::unique_ptr<run_observer>> guard_rounds(run_books& books) {
  return std::unique_ptr<run_observer>(std::make_unique<guard_rounds_observer>(books));
}

} // namespace shoal::scenarios::observing
