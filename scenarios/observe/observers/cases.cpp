// The cases against members, and cases.jsonl.
#include "actors/averaging/observations.hpp"
#include "actors/reasons.hpp"
#include "actors/trust/proof.hpp"
#include "scenarios/observe/case_book.hpp"
#include "scenarios/observe/observers/all.hpp"
#include "scenarios/observe/run_listener.hpp"

#include <fmt/format.h>

#include <utility>

namespace shoal::scenarios::observing {

namespace {

class cases_observer final : public run_observer {
public:
  explicit cases_observer(run_books& books) : books_(books) {}

  void on_observation(const seen_observation& seen) override {
    if (const auto* bad = actors::get_if<actors::misbehaved>(&seen.what))
      add({seen.time,
           name_of(bad->culprit),
           case_what::accused,
           std::string(seen.host),
           bad->why,
           {}});
    else if (const auto* two = actors::get_if<actors::contradicted>(&seen.what))
      add({seen.time,
           name_of(two->culprit),
           case_what::proven,
           std::string(seen.host),
           actors::meaning_of(actors::evidence_of(two->proof)),
           {}});
    else if (const auto* proof = actors::get_if<actors::proof_taken>(&seen.what))
      add({seen.time, proof->name.empty() ? name_of(proof->culprit) : proof->name,
           case_what::banned, std::string(seen.host), actors::meaning_of(proof->what.what),
           actors::to_line(proof->what)});
  }

  void on_round(const swarm_round& what) override {
    if (book_.all().empty() || what.unfinished || what.outcome == actors::outcome::ok) return;
    for (const auto& member : what.members) {
      if (!member.known) continue;
      auto name = name_of(member.peer);
      if (!book_.has(name)) continue;
      add({books_.now,
           std::move(name),
           case_what::round,
           {},
           fmt::format("epoch {}: {}, {}", what.epoch, actors::to_string(what.outcome),
                       actors::to_string(what.reason)),
           {}});
    }
  }

  void flush() override {
    if (file_) file_->flush();
  }
  const std::optional<failure>* error() const override { return file_ ? &file_->error() : &none_; }
  result<void> close() override { return file_ ? file_->commit() : result<void>{}; }

private:
  /// Empty if nobody knows the sender.
  std::string name_of(actors::peer_id peer) const {
    return peer == 0 ? std::string{} : books_.name_of(peer);
  }

  void add(const case_event& what) {
    if (what.member.empty() || !book_.add(what)) return;
    if (books_.options.listener != nullptr) books_.options.listener->case_event(what);
    if (books_.directory == nullptr) return;
    if (!file_) {
      // Most runs have no cases, and no file.
      auto made = books_.directory->open(cases_file);
      if (!made) {
        if (!none_) none_ = failure{made.error()};
        return;
      }
      file_ = *std::move(made);
    }
    file_->write(to_json(what) + "\n");
  }

  run_books& books_;
  case_book book_;
  std::unique_ptr<output_file> file_;
  std::optional<failure> none_; // the file could not be made
};

} // namespace

result<std::unique_ptr<run_observer>> cases(run_books& books) {
  return std::unique_ptr<run_observer>(std::make_unique<cases_observer>(books));
}

} // namespace shoal::scenarios::observing
