// Ctrl-C and SIGTERM end a run in good order, so that its results are kept.
#pragma once

namespace shoal::tools {

/// From now on the first two signals are only counted; the third one ends the process.
void catch_interrupts();
bool interrupted() noexcept;
/// Whether there was a second signal, which asks for a hurry.
bool interrupted_again() noexcept;

} // namespace shoal::tools
