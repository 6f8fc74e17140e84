#include "actors/averaging/guard_observations.hpp"
#include "scenarios/observe/observers/all.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace shoal::scenarios::observing {

namespace {

/// Counts what the members of Byzantine-tolerant rounds find out about each other.
class security_observer final : public run_observer {
public:
  explicit security_observer(run_books& books) : books_(books) {}

  void on_peer_started(const seen_peer& seen) override {
    if (!is_honest(std::string(seen.host))) attackers_.emplace(seen.host);
  }

  void on_observation(const seen_observation& seen) override {
    if (actors::holds_alternative<actors::committed>(seen.what)) {
      guarded_ = true;
    } else if (actors::holds_alternative<actors::audit_planned>(seen.what)) {
      ++totals_.audits;
    } else if (const auto* audit = actors::get_if<actors::audited>(&seen.what)) {
      ++(audit->right ? totals_.passed : totals_.wrong);
    } else if (actors::holds_alternative<actors::accused_member>(seen.what)) {
      ++totals_.accusations;
    } else if (const auto* decided = actors::get_if<actors::case_decided>(&seen.what)) {
      if (decided_.insert(decided->case_id).second) ++totals_.verdicts;
    } else if (actors::holds_alternative<actors::duty_failed>(seen.what)) {
      ++totals_.missed_duties;
    } else if (const auto* ban = actors::get_if<actors::member_banned>(&seen.what)) {
      if (ban->culprit != 0) banned_.emplace(books_.name_of(ban->culprit), epoch());
    }
  }

  void finish(const end_facts&, summary& into) override {
    if (!guarded_) return;
    totals_.attackers = attackers_.size();
    for (const auto& [name, at] : banned_) {
      if (!attackers_.contains(name)) {
        ++totals_.honest_banned;
        continue;
      }
      ++totals_.attackers_banned;
      totals_.first_ban = std::min(totals_.first_ban.value_or(at), at);
      totals_.last_ban = std::max(totals_.last_ban.value_or(at), at);
    }
    into.security = totals_;
  }

private:
  bool is_honest(const std::string& host) const {
    const auto& honest = books_.options.invariants.honest;
    return !honest || honest(host);
  }
  std::uint64_t epoch() const { return books_.checks.highest_epoch(); }

  run_books& books_;
  bool guarded_ = false;
  summary::security_totals totals_;
  std::set<std::string, std::less<>> attackers_;
  std::set<actors::id128> decided_;
  std::map<std::string, std::uint64_t> banned_; // the epoch of the first ban, by host
};

} // namespace

result<std::unique_ptr<run_observer>> security(run_books& books) {
  return std::unique_ptr<run_observer>(std::make_unique<security_observer>(books));
}

} // namespace shoal::scenarios::observing
