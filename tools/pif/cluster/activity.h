// Reports of daemons on their work, for people and programs.
#pragma once

#include <string>
#include <vector>

#include "command/program.h"
#include "pif/client/client.h"

namespace pif::cli {

// One daemon between two looks at it.
struct Activity {
  std::string node;
  double operations = 0;  // per second, as are the next three
  double errors = 0;
  double bytes_in = 0, bytes_out = 0;
  Histogram latency;            // of all operations, `job_wait` and the like (which wait on purpose) left out
  std::uint64_t under_way = 0;  // now
  double log_share = 0;         // of the redo log in use, now; 0 for a server
};

// `seconds` lie between the looks. A daemon that was started between them counts from its start; one that is in `after`
// only, too.
std::vector<Activity> activity_between(const std::vector<DaemonStats>& before, const std::vector<DaemonStats>& after,
                                       double seconds);
std::string activity_table(const std::vector<Activity>& activities);

// A line for each daemon where requests wait for their turn: who waits, those with most requests first. Empty: nobody.
std::string waiting_text(const std::vector<DaemonStats>& daemons);

// Everything since the daemon's start.
Json json_of(const DaemonStats& daemon);

}  // namespace pif::cli
