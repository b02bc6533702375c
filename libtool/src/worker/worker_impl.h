// The parts of a Worker; shared with the exchange.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "messages/job.h"
#include "pif/access/lfs_links.h"
#include "pif/access/requests.h"
#include "pif/net/caller.h"
#include "pif/tool/worker.h"
#include "worker/mail.h"
#include "worker/trace.h"

namespace pif::tool {

struct Worker::Impl {
  explicit Impl(WorkerWorld w);

  [[nodiscard]] Status start();
  [[nodiscard]] Status keep_files();  // those that were brought
  // The values of every worker, by rank, through the controller. Once in a job's life, by all workers.
  [[nodiscard]] Result<std::vector<std::string>> meet(const std::string& value, Duration patience);
  [[nodiscard]] Status attach(Input& input);
  [[nodiscard]] Status attach(Output& output);
  // The object of `slot`; made and attached when it is first asked for.
  template <typename File>
  [[nodiscard]] Result<File*> attached(std::unique_ptr<File>& slot, const job::JobFile& file);
  // Until all of them are done.
  [[nodiscard]] Status run(access::Requests& requests);
  // Tells the controller. It may miss it, if another one follows soon.
  void send_status(const job::WorkerStatus& status);
  // More for the controller, which takes it when it wants to.
  [[nodiscard]] Status stream(std::string_view bytes);
  // is_reported: the controller knows, or will know.
  [[nodiscard]] Status report(Status outcome, bool& is_reported);
  [[nodiscard]] Status end_outputs(job::WorkerEnd& end);
  [[nodiscard]] std::optional<LfsIndex> index_of(const access::FileParts& parts) const;
  // Cores that the workers on this machine may use; 1 in a simulation. Looked up when first asked for. Any thread.
  unsigned usable_cores();

  WorkerWorld world;
  net::Caller caller;
  access::LfsLinks links;  // to the worker's own LFS
  net::PeerId lfs = 0;
  std::uint64_t job_id = 0;
  std::uint32_t rank = 0;
  std::string node_name;
  job::JobDescription description;
  std::unique_ptr<Trace> trace;                // null: nobody asked for one. Before files, which add to it
  std::vector<std::unique_ptr<Input>> inputs;  // by number; empty until asked for
  std::vector<std::unique_ptr<Output>> outputs;
  std::string result;
  std::uint64_t bytes_read = 0;  // of inputs that are closed
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_streamed = 0;
  std::uint64_t bytes_messaged = 0;
  std::shared_ptr<std::atomic<int>> lost = std::make_shared<std::atomic<int>>(0);  // by a disk, of scratch files
  Time next_progress{};
  std::atomic<unsigned> known_cores = 0;  // 0: not known yet
  std::unique_ptr<Mail> mail;             // made when first asked for
};

}  // namespace pif::tool
