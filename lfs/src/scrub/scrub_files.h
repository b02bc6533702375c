// The files that a component must have, whatever is in them: one that was removed is made again, empty, and what should
// be in it is found to be missing afterwards (scrub_rows.h, scrub_pages.h). First all that the LFS has open of the
// component is closed. A file that was removed under the running LFS would be repaired where nobody finds it again.
#pragma once

#include "scrub/scrub_job.h"

namespace pif::lfs {

// Waits, within bounds, until nobody uses the component. Called by a fiber.
void scrub_files(const ScrubJob& job);

}  // namespace pif::lfs
