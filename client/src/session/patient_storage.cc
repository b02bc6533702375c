#include "session/patient_storage.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/component/forwarding_file.h"

namespace pif::client {
namespace {

constexpr std::size_t kReadAtOnce = 4u << 20;
constexpr std::size_t kThreadsMax = 64;  // with those that are left behind

// One read, of a thread that may outlive everybody else.
class SlowRead {
 public:
  SlowRead(std::shared_ptr<component::File> file, std::uint64_t offset, std::size_t size)
      : file_(std::move(file)),
        offset_(offset),
        size_(size),
        bytes_(std::make_unique_for_overwrite<std::byte[]>(size)) {}

  void run() {
    auto outcome = file_->read(offset_, std::span(bytes_.get(), size_));
    const std::lock_guard lock(mutex_);
    outcome_ = std::move(outcome);
    is_done_ = true;
    done_.notify_all();
  }
  // Whether it has ended within this time.
  bool wait(Duration patience) {
    std::unique_lock lock(mutex_);
    return done_.wait_for(lock, patience, [this] { return is_done_; });
  }
  // Once it has ended.
  const Result<std::size_t>& outcome() const { return outcome_; }
  std::span<const std::byte> bytes() const { return {bytes_.get(), size_}; }

 private:
  const std::shared_ptr<component::File> file_;
  const std::uint64_t offset_;
  const std::size_t size_;
  const std::unique_ptr<std::byte[]> bytes_;  // not cleared: the read fills it
  std::mutex mutex_;  // guards is_done_; outcome_ and bytes_ belong to run() before, to the waiter after
  std::condition_variable done_;
  bool is_done_ = false;
  Result<std::size_t> outcome_ = std::size_t{0};
};

// Threads that are made as they are needed, and end with the storage, or when their last read does.
class SlowReaders : public std::enable_shared_from_this<SlowReaders> {
 public:
  // False: there are too many.
  bool start(std::shared_ptr<SlowRead> read) {
    const std::lock_guard lock(mutex_);
    if (idle_ <= queue_.size() && !add_thread()) return false;
    queue_.push_back(std::move(read));
    more_.notify_one();
    return true;
  }
  void stop() {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
    more_.notify_all();
  }

 private:
  bool add_thread() {
    PIF_ASSERT(idle_ <= threads_, idle_, threads_);
    if (threads_ >= kThreadsMax) return false;
    try {
      std::thread([self = shared_from_this()] { self->work(); }).detach();
    } catch (const std::system_error&) {
      return false;
    }
    ++threads_;
    ++idle_;
    return true;
  }
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      more_.wait(lock, [this] { return is_stopping_ || !queue_.empty(); });
      if (is_stopping_) return;
      PIF_ASSERT(idle_ > 0 && idle_ <= threads_, idle_, threads_);
      --idle_;
      const std::shared_ptr<SlowRead> read = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      read->run();
      lock.lock();
      ++idle_;
    }
  }

  std::mutex mutex_;  // guards all below
  std::condition_variable more_;
  std::deque<std::shared_ptr<SlowRead>> queue_;
  std::size_t threads_ = 0;
  std::size_t idle_ = 0;
  bool is_stopping_ = false;
};

// A place in consecutive pieces of memory.
class Cursor {
 public:
  explicit Cursor(std::span<const component::Piece> pieces) : pieces_(pieces) { skip_full(); }

  std::size_t left() const {
    std::size_t bytes = 0;
    for (std::size_t i = at_; i < pieces_.size(); ++i) bytes += pieces_[i].size;
    return bytes - within_;
  }
  // The rest of the piece.
  std::span<std::byte> piece() const {
    return at_ == pieces_.size() ? std::span<std::byte>()
                                 : std::span(pieces_[at_].data + within_, pieces_[at_].size - within_);
  }
  void advance(std::size_t bytes) {
    PIF_ASSERT(bytes <= piece().size(), bytes, piece().size());
    within_ += bytes;
    skip_full();
  }
  void copy(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const std::size_t size = std::min(bytes.size(), piece().size());
      std::memcpy(piece().data(), bytes.data(), size);
      advance(size);
      bytes = bytes.subspan(size);
    }
  }

 private:
  void skip_full() {
    while (at_ < pieces_.size() && within_ == pieces_[at_].size) {
      ++at_;
      within_ = 0;
    }
  }
  std::span<const component::Piece> pieces_;
  std::size_t at_ = 0;
  std::size_t within_ = 0;
};

class PatientFile final : public component::ForwardingFile {
 public:
  PatientFile(std::unique_ptr<component::File> file, std::shared_ptr<SlowReaders> readers, Duration patience)
      : ForwardingFile(std::move(file)), readers_(std::move(readers)), patience_(patience) {}

  Result<std::size_t> read(std::uint64_t offset, std::span<const component::Piece> pieces) override {
    Cursor cursor(pieces);
    std::uint64_t at = offset;
    for (bool is_cached = true; is_cached && !cursor.piece().empty();) {
      const std::size_t wanted = cursor.piece().size();
      const auto found = inner()->read_cached(at, cursor.piece());
      const std::size_t count = found.value_or(0);  // an error shows in the slow read
      PIF_ASSERT(count <= wanted, at, count, wanted);
      cursor.advance(count);
      at += count;
      is_cached = count == wanted;
    }
    while (cursor.left() > 0) {
      PIF_TRY_VALUE(const std::size_t count, read_slowly(at, cursor));
      if (count == 0) break;
      at += count;
    }
    return at - offset;
  }

 private:
  Result<std::size_t> read_slowly(std::uint64_t offset, Cursor& cursor) {
    const std::size_t size = std::min(cursor.left(), kReadAtOnce);
    PIF_ASSERT(size > 0, offset);
    PIF_TRY(check_answered(offset));
    const auto read = std::make_shared<SlowRead>(inner(), offset, size);
    if (!readers_->start(read)) return fail(unanswered(offset));
    if (!read->wait(patience_)) {
      const std::lock_guard lock(mutex_);
      left_ = read;
      return fail(unanswered(offset));
    }
    if (!read->outcome()) return fail(read->outcome().error());
    PIF_ASSERT(*read->outcome() <= size, *read->outcome(), size);
    cursor.copy(read->bytes().first(*read->outcome()));
    return *read->outcome();
  }
  Status check_answered(std::uint64_t offset) {
    const std::lock_guard lock(mutex_);
    if (left_ && !left_->wait(Duration::zero())) return fail(unanswered(offset));
    left_.reset();
    return {};
  }
  Error unanswered(std::uint64_t offset) const {
    return {Code::kTimeout,
            fmt::format("the disk has not answered a read at byte {} of a component for {} s", offset,
                        std::chrono::duration<double>(patience_).count()),
            {}};
  }

  const std::shared_ptr<SlowReaders> readers_;
  const Duration patience_;
  std::mutex mutex_;  // guards left_
  std::shared_ptr<SlowRead> left_;
};

class PatientStorage final : public component::Storage {
 public:
  PatientStorage(std::unique_ptr<component::Storage> inner, Duration patience)
      : inner_(std::move(inner)), patience_(patience) {}
  ~PatientStorage() override { readers_->stop(); }
  PatientStorage(const PatientStorage&) = delete;
  PatientStorage& operator=(const PatientStorage&) = delete;

  Result<std::unique_ptr<component::File>> adopt(Handle handle) override {
    PIF_TRY_VALUE(auto file, inner_->adopt(std::move(handle)));
    return std::make_unique<PatientFile>(std::move(file), readers_, patience_);
  }
  Result<std::unique_ptr<component::File>> open(const std::string& path, component::OpenMode mode) override {
    return inner_->open(path, mode);
  }
  Result<Handle> make_nameless(const std::string& folder) override { return inner_->make_nameless(folder); }
  Status remove(const std::string& path) override { return inner_->remove(path); }
  Status rename(const std::string& from, const std::string& to) override { return inner_->rename(from, to); }
  Status make_folder(const std::string& path) override { return inner_->make_folder(path); }
  Status remove_tree(const std::string& path) override { return inner_->remove_tree(path); }
  Result<std::vector<std::string>> list(const std::string& path) override { return inner_->list(path); }
  Status sync_folder(const std::string& path) override { return inner_->sync_folder(path); }
  Status sync_all(const std::string& path) override { return inner_->sync_all(path); }
  Result<component::Space> space(const std::string& path) override { return inner_->space(path); }
  Status lock(const std::string& path) override { return inner_->lock(path); }
  Result<std::optional<std::uint64_t>> stored_bytes(const std::string& path) override {
    return inner_->stored_bytes(path);
  }

 private:
  const std::unique_ptr<component::Storage> inner_;
  const Duration patience_;
  const std::shared_ptr<SlowReaders> readers_ = std::make_shared<SlowReaders>();
};

}  // namespace

std::unique_ptr<component::Storage> make_patient(std::unique_ptr<component::Storage> inner, Duration patience) {
  return std::make_unique<PatientStorage>(std::move(inner), patience);
}

}  // namespace pif::client
