#include "scenarios/schema/over_time.hpp"

#include "scenarios/schema/check_scenario.hpp"
#include "scenarios/schema/checking.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace shoal::scenarios {
namespace {

class over_time_checker : checking {
public:
  over_time_checker(const scenario& what, const source_map& sources, const std::string& folder,
                    std::vector<problem>& problems)
      : checking(sources, problems), s_(what), folder_(folder) {}

  void run() {
    for (const peer_group& group : s_.peers) {
      const std::string path = "peers." + group.name;
      one(group.over_time, path + ".over_time", changed_line::group);
      if (group.over_time.any() && sources_.given(path + ".bursts") && sets_loss(group.over_time))
        error_at_key(path + ".over_time",
                     "'bursts' and a 'loss' over time both say how packets are lost");
    }
    for (std::size_t i = 0; i < s_.network.links.size(); ++i)
      one(s_.network.links[i].over_time, fmt::format("network.links.{}.over_time", i),
          changed_line::way);
    for (const auto& [name, link] : s_.network.shared_links)
      one(link.over_time, "network.shared_links." + name + ".over_time", changed_line::shared);
  }

private:
  bool sets_loss(const over_time_options& o) const {
    for (const auto& step : o.steps)
      if (step.loss) return true;
    return false;
  }

  void one(const over_time_options& o, const std::string& path, changed_line of) {
    if (!sources_.given(path) || !sound({path, path + ".steps", path + ".trace", path + ".repeat"}))
      return;
    const auto inside = sources_.failed.lower_bound(path + ".");
    if (inside != sources_.failed.end() && inside->starts_with(path + ".")) return;
    if (o.steps.empty() == o.trace.empty())
      return error_at_key(path, o.trace.empty()
                                    ? path + " needs 'steps' or a 'trace'"
                                    : "both 'steps' and 'trace': a line has one of them");
    auto changes = o.steps;
    if (!o.trace.empty()) {
      const auto file = path_from(folder_, o.trace);
      std::error_code failed;
      if (!std::filesystem::is_regular_file(file, failed))
        return error(path + ".trace", no_such_file(o.trace, folder_));
      std::ifstream in(file, std::ios::binary);
      auto read = netem::read_line_trace(in);
      for (const auto& what : read.problems) {
        problem made{sources_.value_at(path + ".trace"),
                     what.message,
                     {},
                     false,
                     seen_from_here(file),
                     {},
                     what.source_line};
        made.there = {-1, static_cast<int>(what.line), static_cast<int>(what.column),
                      static_cast<int>(what.length)};
        problems_.push_back(std::move(made));
      }
      if (!read.problems.empty()) return;
      changes = std::move(read.changes);
    }
    for (std::size_t i = 0; i < changes.size(); ++i) {
      const auto& c = changes[i];
      const std::string at =
          o.trace.empty() ? fmt::format("{}.steps.{}", path, i) : path + ".trace";
      if (o.trace.empty() && i > 0 && c.at <= changes[i - 1].at)
        error(at + ".at", fmt::format("out of order: the step before this one is at {}",
                                      to_string(changes[i - 1].at)));
      const char* wrong = nullptr;
      if (of == changed_line::way && (c.up || c.down))
        wrong = "the way between regions has a 'delay' and a 'loss', but no 'up' and 'down'";
      if (of == changed_line::shared && (c.delay || c.loss))
        wrong = "a shared link has 'up' and 'down', but no 'delay' and 'loss'";
      if (wrong != nullptr) {
        error(at, wrong);
        break;
      }
      if (o.trace.empty() && !c.up && !c.down && !c.delay && !c.loss)
        error(at, "this step changes nothing");
    }
    if (o.repeat > duration::zero() && !changes.empty() && o.repeat <= changes.back().at)
      error(path + ".repeat", fmt::format("{} is over before the last change, at {}",
                                          to_string(o.repeat), to_string(changes.back().at)));
  }

  const scenario& s_;
  const std::string& folder_;
};

} // namespace

result<std::vector<netem::line_change>> changes_of(const over_time_options& what,
                                                   const std::string& folder) {
  if (what.trace.empty()) return what.steps;
  const auto file = path_from(folder, what.trace);
  errno = 0;
  std::ifstream in(file, std::ios::binary);
  if (!in) return failure{fmt::format("{}: error: cannot be read: {}", file, std::strerror(errno))};
  auto read = netem::read_line_trace(in);
  if (read.problems.empty()) return std::move(read.changes);
  const auto& first = read.problems.front();
  return failure{fmt::format("{}:{}:{}: error: {}", file, first.line, first.column, first.message)};
}

void check_over_time(const scenario& what, const source_map& sources, const std::string& folder,
                     std::vector<problem>& problems) {
  over_time_checker(what, sources, folder, problems).run();
}

} // namespace shoal::scenarios
