#include "tools/run_page.hpp"

#include "scenarios/observe/run_directory.hpp"
#include "scenarios/page/page_file.hpp"

#include <algorithm>
#include <filesystem>

namespace shoal::tools {

namespace {

using steady = std::chrono::steady_clock;

/// The least time between two pictures of a watched run. A slow picture increases it, so that
/// pictures take at most a fiftieth of the time.
constexpr auto least_between = std::chrono::milliseconds(500);
constexpr int times_its_cost = 50;
/// The time that viewers have to fetch the last figures when the run is over.
constexpr auto leave_taking = std::chrono::seconds(3);

} // namespace

result<std::unique_ptr<run_page>> run_page::open(const std::string& dashboard,
                                                 const std::string& out) {
  std::unique_ptr<run_page> made(new run_page);
  made->out_ = out;
  if (!out.empty()) made->view_->pictures_from(std::filesystem::path(out) / "checkpoints");
  if (auto page = scenarios::load_page())
    made->page_ = std::move(*page);
  else
    made->missing_ = page.error();
  if (dashboard.empty()) return made;
  if (made->page_.empty()) return failure{made->missing_};
  made->feed_ = std::make_shared<scenarios::page_feed>(scenarios::run_place{
      out.empty() ? "the run" : std::filesystem::path(out).lexically_normal().string()});
  auto server = scenarios::page_server::listen(dashboard, made->page_, {made->feed_});
  if (!server) return failure{server.error()};
  made->server_ = std::move(*server);
  return made;
}

void run_page::publish() {
  const auto begun = steady::now();
  feed_->publish(view_->sections());
  const auto cost = steady::now() - begun;
  next_ = steady::now() + std::max<steady::duration>(least_between, times_its_cost * cost);
}

void run_page::attach(scenarios::runner_options& to) {
  // Without a page there is no viewer.
  if (page_.empty() || (!feed_ && out_.empty())) return;
  to.listener = view_.get();
  if (!feed_) return;
  to.on_status = [this, before = std::move(to.on_status)](const scenarios::live_status& status) {
    if (before) before(status);
    if (feed_->readers() > 0 && steady::now() >= next_) publish();
  };
}

std::string run_page::finish() {
  std::string out;
  if (page_.empty()) out = out_.empty() ? "" : missing_;
  auto sections = page_.empty() ? std::vector<scenarios::run_view::section>{} : view_->sections();
  if (!out_.empty() && !page_.empty()) {
    const auto path = std::filesystem::path(out_);
    auto file = scenarios::output_file::create(path / "report.html");
    if (file)
      (*file)->write(
          scenarios::make_report(page_, {{{path.lexically_normal().string()}, sections}}));
    if (auto written = file ? (*file)->commit() : result<void>(failure{file.error()}); !written)
      out = written.error();
  }
  if (feed_) {
    feed_->publish(std::move(sections));
    feed_->finish();
    server_->drain(leave_taking);
  }
  return out;
}

} // namespace shoal::tools
