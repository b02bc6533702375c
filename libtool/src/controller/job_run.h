// One job under way: starts its workers through a tree, asks every LFS about them (which is also the job's lease), and
// ends it everywhere when anything goes wrong. A job that ended badly is over on every LFS that can still be reached.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "controller/letter_ledger.h"
#include "controller/stream_merge.h"
#include "messages/job.h"
#include "pif/tool/controller.h"

namespace pif::tool {

class JobRun {
 public:
  // All outlive the run. nodes: by rank; several ranks may be on one node. keep_files: called in every turn; its error
  // ends the job. grants: good ones (check_grants).
  JobRun(client::Session& session, const ControllerOptions& options, std::vector<proto::NodeInfo> nodes,
         std::function<Status()> keep_files, StreamTaker taker, std::vector<FolderGrant> grants);

  std::uint64_t id() const { return id_; }
  // Asks for the workers, and waits until the tree has started them all.
  [[nodiscard]] Status start(const std::string& description);
  // Waits until all workers have reported and ended, and all is taken that they streamed; their reports by rank. None,
  // if the taker has had enough before.
  [[nodiscard]] Result<std::vector<job::WorkerEnd>> wait();

 private:
  // A worker, by rank.
  struct Node {
    proto::NodeInfo info;               // of its LFS
    std::string report;                 // as much as has come
    std::string said;                   // of a line whose end has not come
    std::optional<job::WorkerEnd> end;  // it, when it is whole
    bool exited = false;
    std::optional<std::string> meet;  // what its worker gives the others
    job::WorkerStatus status;
    bool is_streamed = false;  // all that it put has come
  };

  // An LFS with all its workers: more than one where it stands in for others.
  struct Host {
    proto::NodeInfo info;
    std::vector<std::uint32_t> ranks;
    std::optional<net::CallId> waiting;  // JobWait under way
    std::uint64_t seen = 0;
    bool is_asked_again = false;  // since an answer was lost
    bool lacked_room = false;     // when it was asked last: the stream of a worker there waits
  };

  // Sent to an LFS, which has not answered yet.
  struct Part {
    net::CallId call = 0;
    proto::NodeInfo node;
    std::optional<proto::Envelope> again;  // to be sent again, once, if the answer is lost
  };

  // The part that all requests to start the worker of this rank share.
  proto::Spawn spawn_of(std::uint32_t rank) const;
  // Sends the part of the description that begins there down the tree; the last one starts the workers.
  [[nodiscard]] Status start_tree(const std::string& description, std::size_t at);
  // Waits for the answers to what was sent.
  [[nodiscard]] Status finish_spawning();
  // Brings the program to the LFSs of these workers, which lack it, and starts them: a part at a time, to all LFSs at
  // once.
  [[nodiscard]] Status bring_program(const std::vector<std::uint32_t>& ranks);
  // How long it is, if it can be brought to where this worker is to run.
  [[nodiscard]] Result<std::uint64_t> program_size(std::uint32_t rank) const;
  // Its bytes from `at` on; none at its end, which starts the worker.
  [[nodiscard]] Status send_program(std::uint32_t rank, std::uint64_t at, std::uint64_t size,
                                    std::span<const std::byte> bytes);
  [[nodiscard]] Status ask(Host& host);
  [[nodiscard]] Status send(std::vector<Part>& parts, const proto::NodeInfo& node, net::Packet request);
  // One turn: waits a little, then takes every answer that is there.
  [[nodiscard]] Status turn();
  [[nodiscard]] Status take_answers(std::vector<Part>& parts);
  [[nodiscard]] Status take_waits();
  // Whether the LFS may have what was sent, and keep it, although its answer did not come.
  bool may_be_there(const proto::NodeInfo& node, const Error& error);
  // After an answer that did not come. Fail with that error, if there is no use in it.
  [[nodiscard]] Status send_again(std::vector<Part>& parts, Part part, Error error);
  [[nodiscard]] Status ask_again(Host& host, const Error& error);
  // Gives the taker what it takes now of the streams, and the records that have come whole.
  [[nodiscard]] Status take_streams();
  // Those are asked anew for whose streams there was no room, and is now.
  [[nodiscard]] Status offer_room();
  bool has_room(const Host& host) const;
  [[nodiscard]] Status end_stream(std::uint32_t rank);
  [[nodiscard]] Status take_event(const proto::JobWaitReply::Event& event);
  [[nodiscard]] Status take_result(std::uint32_t rank, const proto::JobWaitReply::Event& event);
  [[nodiscard]] Status take_meet(std::uint32_t rank, std::string value);
  [[nodiscard]] Status take_exit(std::uint32_t rank, const proto::JobWaitReply::Event& event);
  // Gives whole lines to on_words; the rest stays.
  void take_said(std::uint32_t rank, const std::string& words);
  void show_line(std::uint32_t rank, std::string_view line) const;
  [[nodiscard]] Status take_progress(std::uint32_t rank, const std::string& bytes);
  // Takes the counts of a worker that waits.
  [[nodiscard]] Status take_letters(std::uint32_t rank, const job::LetterCounts& counts);
  [[nodiscard]] tl::unexpected<Error> worker_failed(std::uint32_t rank, Error error) const;
  [[nodiscard]] bool is_over(std::uint32_t rank) const {
    return nodes_[rank].end && nodes_[rank].exited && nodes_[rank].is_streamed;
  }
  [[nodiscard]] bool is_over(const Host& host) const;
  [[nodiscard]] bool is_over() const;
  // Kills the workers everywhere, for at most a second, and hands the error back.
  [[nodiscard]] tl::unexpected<Error> end_everywhere(Error error);

  client::Session& session_;
  const ControllerOptions& options_;
  std::vector<FolderGrant> grants_;
  std::function<Status()> keep_files_;
  std::uint64_t id_;
  std::vector<Node> nodes_;
  std::vector<Host> hosts_;
  bool is_described_ = false;  // all parts of the description have been sent
  std::vector<Part> spawning_;
  std::vector<std::uint32_t> lacking_;  // ranks that were not started for want of the program
  std::vector<Part> meeting_;
  LetterLedger ledger_;
  StreamTaker taker_;
  StreamMerge merge_;
  bool is_full_ = false;     // the taker takes nothing now
  bool had_enough_ = false;  // or any more
};

inline constexpr Duration kTurn = std::chrono::milliseconds(100);  // how soon a wanted to end is noticed

// Waits for one turn of the loop, at most; kCancelled when the user wants to end.
[[nodiscard]] Status pump(client::Session& session, const ControllerOptions& options, Duration turn = kTurn);

}  // namespace pif::tool
