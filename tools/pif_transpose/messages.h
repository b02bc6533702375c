// Between what pif-transpose's processes send one another (proto/transpose.proto) and the shapes of the program. Input
// here comes from another process: errors are kCorrupt and say whose it was.
#pragma once

#include <string>
#include <string_view>

#include "matrix/cost.h"
#include "pif/tool/message.h"
#include "transpose.h"
#include "transpose.pb.h"

namespace pif::transpose {

// The controller's request to its workers (Job::value).
struct JobSpec {
  Shape shape;
  Algorithm algorithm = Algorithm::kDirect;
  std::uint64_t memory = 0;  // of all workers together
};
std::string pack(const JobSpec& spec);
// records, record_length: of the input. The matrix is in them.
Result<JobSpec> unpack_job_spec(std::string_view bytes, std::uint64_t records, std::uint32_t record_length);

// The result of a worker (Worker::set_result).
struct Outcome {
  Phases phases;
};
std::string pack(const Outcome& outcome);
Result<Outcome> unpack_outcome(std::string_view bytes, std::uint32_t rank);

}  // namespace pif::transpose
