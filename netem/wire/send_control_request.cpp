#include "netem/wire/send_control_request.hpp"

#include "netem/wire/clean_text.hpp"

#include <fmt/format.h>

#include <atomic>
#include <future>

namespace shoal::netem::wire {

frame to_frame(const control_answer& what) {
  frame out;
  out.head.push_back(what.done ? 1 : 0);
  const auto text = std::string_view(what.text).substr(0, longest_answer);
  out.head.insert(out.head.end(), text.begin(), text.end());
  return out;
}

std::optional<control_answer> read_control_answer(std::span<const std::byte> bytes) {
  if (bytes.empty()) return {};
  return control_answer{
      std::to_integer<int>(bytes[0]) == 1,
      std::string(reinterpret_cast<const char*>(bytes.data()) + 1, bytes.size() - 1)};
}

result<std::string> send_control_request(const address& where, const std::string& name,
                                         const std::shared_ptr<const tls_credentials>& credentials,
                                         const std::shared_ptr<const admission>& admits,
                                         const std::string& question,
                                         std::chrono::milliseconds timeout) {
  // Both callbacks may come after we have given up.
  struct outcome {
    std::promise<result<std::string>> said;
    std::atomic<bool> told{false};
    void tell(result<std::string> what) {
      if (!told.exchange(true)) said.set_value(std::move(what));
    }
  };
  auto out = std::make_shared<outcome>();
  auto answer = out->said.get_future();
  auto through = open_pipe(where.text(), control_request_kind, credentials, {});
  const auto at = where.text();
  through->start(
      [out, admits, at, name, weak = std::weak_ptr<pipe>(through)](payload bytes) {
        const auto self = weak.lock();
        auto said = read_control_answer(bytes.bytes());
        if (!self || !said) return out->tell(failure{fmt::format("{}: its answer is damaged", at)});
        if (admits) {
          certified_member who;
          std::string detail;
          const auto utc = std::chrono::duration_cast<std::chrono::nanoseconds>(
                               std::chrono::system_clock::now().time_since_epoch())
                               .count();
          if (const auto why = admits->check(self->certificate(), utc, who, detail);
              why != refusal::none)
            return out->tell(failure{fmt::format("{} is not one of the swarm: {}, {}", at,
                                                 name_of(why), clean_text(detail))});
          if (!name.empty() && who.name != name)
            return out->tell(failure{fmt::format("{} is '{}', not '{}'", at, who.name, name)});
        }
        if (!said->done)
          return out->tell(failure{fmt::format("{}: {}", at, clean_text(said->text))});
        out->tell(std::move(said->text));
      },
      [out, at](const std::string& why) {
        out->tell(failure{fmt::format("{}: {}", at, clean_text(why))});
      });
  frame asked;
  asked.head.assign(question.begin(), question.end());
  through->send(std::move(asked));
  if (answer.wait_for(timeout) != std::future_status::ready)
    out->tell(failure{fmt::format("{}: no answer in {} s", at, timeout.count() / 1000.0)});
  auto said = answer.get();
  through->close();
  return said;
}

} // namespace shoal::netem::wire
