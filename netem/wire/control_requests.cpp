#include "netem/wire/control_requests.hpp"

#include "netem/wire/certificates.hpp"
#include "netem/wire/send_control_request.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace shoal::netem::wire {

bool open_requests::add(std::shared_ptr<pipe> through, const control_client& who, duration now) {
  const auto count = [this](const auto& counts) {
    return static_cast<std::size_t>(std::count_if(
        open_.begin(), open_.end(), [&](const auto& entry) { return counts(entry.second); }));
  };
  if (stopped_ || open_.size() >= most_control_requests) return false;
  if (!who.operates) {
    const auto of_it = count([&](const request& each) { return each.name == who.name; });
    const auto of_others = count([](const request& each) { return !each.operates; });
    if (of_it >= most_requests_of_one || of_others >= most_control_requests - kept_for_operators)
      return false;
  }
  const auto* key = through.get();
  open_.emplace(key, request{std::move(through), who.name, who.operates, now});
  return true;
}

std::shared_ptr<pipe> open_requests::take_question(const pipe* through) {
  const auto found = open_.find(through);
  if (found == open_.end() || std::exchange(found->second.asked, true)) return nullptr;
  return found->second.through;
}

std::vector<std::shared_ptr<pipe>> open_requests::overdue(duration now, duration limit) const {
  std::vector<std::shared_ptr<pipe>> out;
  for (const auto& [through, each] : open_)
    if (now - each.since > limit) out.push_back(each.through);
  return out;
}

std::vector<std::shared_ptr<pipe>> open_requests::stop() {
  stopped_ = true;
  std::vector<std::shared_ptr<pipe>> out;
  for (const auto& [through, each] : open_) out.push_back(each.through);
  return out;
}

refusal control_requests::identify(const pipe& through, control_client& who,
                                   std::string& detail) const {
  who.operates = true;
  if (!around_.answer) return refusal::not_ours;
  if (!around_.admits) return refusal::none;
  who.operates = false;
  const auto certificate = through.certificate();
  certified_member holder;
  const auto why = around_.admits->check(certificate, around_.utc_ns(), holder, detail);
  who.name = holder.name;
  if (why == refusal::none) who.operates = read_certificate(certificate)->operates;
  return why;
}

void control_requests::incoming(std::shared_ptr<pipe> made, duration now) {
  control_client who;
  std::string detail;
  const auto refused = identify(*made, who, detail);
  if (!requests_.lock()->add(made, who, now)) return reject(made);
  if (refused != refusal::none) around_.count_refusal(name_of(refused));
  made->start(
      [weak = weak_from_this(), who, through = made.get()](payload bytes) {
        if (auto self = weak.lock()) self->asked(through, who, bytes);
      },
      [weak = weak_from_this(), through = made.get()](const std::string&) {
        if (auto self = weak.lock()) self->requests_.lock()->remove(through);
      });
  if (refused == refusal::none) return;
  made->send(to_frame(control_answer{false, std::string(name_of(refused)) +
                                                (detail.empty() ? "" : ", " + detail)}));
  made->finish();
}

void control_requests::asked(const pipe* through, const control_client& who, const payload& bytes) {
  const auto to = requests_.lock()->take_question(through);
  if (!to) return;
  if (bytes.size() > longest_question) {
    around_.count_refusal("bad_frame");
    return to->close();
  }
  const auto all = bytes.bytes();
  control_answer says{false, "it could not answer"};
  try {
    says = around_.answer(who, {reinterpret_cast<const char*>(all.data()), all.size()});
  } catch (const std::exception&) {
    around_.count_refusal("failed_callback");
  }
  to->send(to_frame(says));
  to->finish();
}

void control_requests::close_overdue(duration now, duration limit) {
  const auto late = requests_.lock()->overdue(now, limit);
  for (const auto& each : late) each->close();
}

void control_requests::close() {
  const auto open = requests_.lock()->stop();
  for (const auto& each : open) each->close();
}

void reject(const std::shared_ptr<pipe>& made) {
  made->start([](payload) {}, [](const std::string&) {});
  made->close();
}

} // namespace shoal::netem::wire
