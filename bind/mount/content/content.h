// The bytes of one file of a mount, from its first open to its last close: what programs here see, and when the file
// system is informed. One state machine; docs/MOUNT.md has its rules. The caller has the Client for itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "content/gathered.h"
#include "content/unsent.h"
#include "pif/client/client.h"
#include "pif/client/rewrite.h"

namespace pif::mount {

class Content {
 public:
  // kCommitted: all but what is gathered is in the committed file.
  // kTruncated: a new version was begun, and no byte was written to it. A close tells nobody of it but the last one:
  //   `> file` and `dd of=file` open, duplicate and close before they write.
  // kWritten: a new version has bytes that others do not see.
  // kCommitted -> kTruncated, kWritten; kTruncated -> kWritten; both -> kCommitted by a commit.
  // A mount with -o lazy, too:
  // kUnsent: the file system does not know the file, and a program writes it. All of it is here.
  // kWaiting: so, but it was closed: it is sent as it is. A change of its bytes sends it first. kUnsent -> kWaiting by
  // a close; both -> kCommitted by send_many(); kUnsent -> kTruncated, kWritten by send_name();
  //   kWaiting -> kUnsent when it loses its name.
  enum class State : std::uint8_t { kCommitted, kTruncated, kWritten, kUnsent, kWaiting };

  // A committed file. One that may not be read has no File yet.
  Content(Client& client, Entry entry, std::optional<File> opened, std::uint64_t rewrite_max);
  // One that was created here.
  Content(Client& client, Client::CreatedNow created, std::uint64_t rewrite_max);
  // kUnsent. entry: with the node that it has here.
  Content(Client& client, Entry entry, std::unique_ptr<Unsent> unsent, std::uint64_t rewrite_max);

  State state() const { return state_; }
  std::uint64_t id() const { return entry_.id; }  // of the committed version
  // The committed version as last heard, with the size that programs here see.
  Entry entry() const;
  std::uint64_t size() const;
  // The directory's entry of the file as programs here see it: the directory hears late of what is written.
  Entry shown(Entry entry) const;
  // Nothing here differs from what others see.
  bool is_clean() const { return state_ == State::kCommitted && gathered_.is_empty(); }
  bool is_unlinked() const { return is_unlinked_; }
  bool is_unsent() const { return unsent_ != nullptr; }
  // Why what was written is lost; no error: it is not.
  const Status& failed() const { return failed_; }
  // Bytes that programs wrote before `time` are still here.
  bool is_gathered_before(Time time) const { return gathered_.is_before(time); }
  // Open for writing, and not written to since `time`: tools wait for that.
  bool is_idle_since(Time time) const { return writes_ && gathered_.is_empty() && written_at_ < time; }

  [[nodiscard]] Result<std::size_t> read(std::span<std::byte> out, std::uint64_t offset);
  [[nodiscard]] Status write(std::span<const std::byte> in, std::uint64_t offset, Time now);
  // Where the file ends then, whoever else appends.
  [[nodiscard]] Status append(std::span<const std::byte> in, Time now);
  [[nodiscard]] Status truncate(std::uint64_t size);

  // The committed file has what was gathered of it, and so has a new version, which nobody else sees. Before a time is
  // set: what is written later would take it away.
  [[nodiscard]] Status send();
  // A close by who opened it: send(), and commit what was written.
  [[nodiscard]] Status flush();
  // fsync: durable, and others see it.
  [[nodiscard]] Status commit();
  // The last close.
  [[nodiscard]] Status finish();
  // It is not written to for now: holds of tools are let in.
  void rest();

  // Before its name goes: it can be read and written as long as it is open.
  [[nodiscard]] Status hold();
  // ---- unsent files ----
  // Those that wait are sent together, and the others stay as they are. All are of this client. failed() says how each
  // ended.
  static void send_many(Client& client, std::span<Content* const> contents);
  // The file system knows the file when it returns, as long as it is open: one that is written as an empty file.
  [[nodiscard]] Status send_name();
  // Nobody writes it now. Nothing happens to others.
  void close_unsent();
  void change_unsent(const AttributeChange& change);

  // Its bytes were changed at this time.
  void touch(std::int64_t wall_ns);
  // The time of the last change is not known from the server.
  bool is_touched() const { return touched_ns_ != 0; }
  // A program has set its time since.
  void forget_touch() { touched_ns_ = 0; }
  // Changes the attributes of a file without a name, which nobody else knows.
  void change_unlinked(const AttributeChange& change);

  // The directory's latest answer.
  void take_attributes(const Entry& entry);
  // It has no name any more: nothing of it is committed from now on. folder: where it was.
  void unlink(std::string folder) {
    is_unlinked_ = true;
    folder_ = std::move(folder);
    if (state_ == State::kWaiting) state_ = State::kUnsent;
  }
  // Changes that others have made meanwhile. It is clean.
  void take_newer(Entry entry, std::optional<File> opened);
  // An append went elsewhere than programs here believe: what the kernel has of the file is wrong. Once.
  bool take_moved() { return std::exchange(has_moved_, false); }

 private:
  // The server forgets an empty file with its name, though it is open.
  bool is_forgotten() const {
    return is_unlinked_ && state_ == State::kCommitted && gathered_.is_empty() && size_at_server() == 0;
  }
  Status open(Client::Mode mode);
  Result<File*> readable();
  Result<File*> writable();
  Status begin_version(std::uint64_t keep);
  Result<File> create_unlinked(std::uint64_t keep);
  // Before an append: its end is known, if it is the committed file that is appended to.
  Status prepare_append();
  // Before a change of the committed file at `offset`: begins a new version where it cannot be made in place.
  Status prepare(std::uint64_t offset);
  Status add(std::span<const std::byte> in, std::uint64_t offset, Time now);
  Status send_to_committed();
  Status grow(std::uint64_t size);
  // The committed file was changed, says its time, though its bytes are the same.
  Status note_same();
  void take_change(const AttributeChange& change);
  std::uint64_t size_at_server() const;  // without what is gathered
  Status publish();
  // Before a change of its bytes: what waits is sent, and what grows too large gets a name.
  Status prepare_unsent(std::uint64_t size);
  Status send_waiting();  // by itself
  Result<File> make_named();
  static std::vector<Content*> send_once(Client& client, std::span<Content* const> contents);
  void take_sent(const Status& outcome, const File* file);

  Client& client_;
  const std::uint64_t rewrite_max_;
  std::unique_ptr<Unsent> unsent_;  // kUnsent, kWaiting
  State state_ = State::kCommitted;
  Entry entry_;
  std::optional<File> file_;     // the committed version, if it is open
  bool writes_ = false;          // file_ is open for writing
  std::optional<File> version_;  // being written: kTruncated, kWritten
  Gathered gathered_;
  bool appends_ = false;  // what is gathered goes to the end, wherever that is
  Time written_at_{};
  std::int64_t touched_ns_ = 0;  // when programs here changed its bytes; 0: the server has its time
  Status failed_;                // of the version, or the unsent file: it is never committed
  bool is_unlinked_ = false;
  std::string folder_;
  bool has_moved_ = false;
};

}  // namespace pif::mount
