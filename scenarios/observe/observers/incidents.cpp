#include "scenarios/observe/observers/all.hpp"

#include <map>
#include <string>

namespace shoal::scenarios::observing {

namespace {

class incidents_observer final : public run_observer {
public:
  explicit incidents_observer(run_books& books) : values_(books.values) {}

  void on_observation(const seen_observation& seen) override {
    if (actors::holds_alternative<actors::misbehaved>(seen.what)) ++misbehaved_;
  }
  void on_fault(const seen_fault& fault) override {
    if (fault.begins) struck_ += std::max<std::size_t>(fault.hosts.size(), 1);
  }
  void on_point(std::string_view point) override {
    const auto found = points_.find(point);
    ++(found == points_.end() ? points_.emplace(point, 0).first : found)->second;
  }

  void set_metrics(duration) override {
    values_.set(metric::misbehaved, static_cast<double>(misbehaved_));
    for (const auto& [point, count] : points_) values_.set(metric_by_label::points, point, count);
  }

  void finish(const end_facts&, summary& into) override { into.faults_struck = struck_; }

private:
  metrics& values_;
  std::map<std::string, std::uint64_t, std::less<>> points_;
  std::uint64_t misbehaved_ = 0, struck_ = 0;
};

} // namespace

result<std::unique_ptr<run_observer>> incidents(run_books& books) {
  return std::unique_ptr<run_observer>(std::make_unique<incidents_observer>(books));
}

} // namespace shoal::scenarios::observing
