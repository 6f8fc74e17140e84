// The page as one file of HTML, which the build makes from tools/web, and reports: that file with
// the data of runs in it.
#pragma once

#include "kernels/base/result.hpp"
#include "scenarios/page/run_view.hpp"

#include <memory>
#include <string>
#include <vector>

namespace shoal::scenarios {

/// The text of the page: the file that SHOAL_PAGE names, else ../web/page.html or
/// ../share/shoal/page.html from the program's folder. Errors: it was not built; says what is
/// missing.
result<std::string> load_page();

/// The page with a chat box (tools/web/chat.html), found in the same way as chat.html.
result<std::string> load_chat_page();

/// A run of a report. A section 'comparison' says how far it was from the first one, as `shoal
/// compare --json` does.
struct reported_run {
  run_place place;
  std::vector<run_view::section> sections;
};

/// `page` with these runs in it, as a file that needs nothing else.
std::string make_report(std::string page, const std::vector<reported_run>& runs);

} // namespace shoal::scenarios
