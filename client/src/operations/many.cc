// Many small files at once: whatever can be under way together is, before any of it is waited for.
#include <fmt/format.h>

#include "file/file_state.h"
#include "names/names.h"
#include "pieces/async_operation.h"
#include "pif/access/row_copies.h"
#include "pif/base/assert.h"
#include "pif/client/commit_many.h"
#include "pif/wire/convert.h"
#include "session/in_use.h"

namespace pif {

using client::FileState;

namespace {

// Files, each with requests of its own (CreatedWriter::requests), so that one that fails takes no other with it.
class Batch {
 public:
  Batch(const client::Session& session, std::span<File* const> files) : outcome_(files.size()) {
    for (File* file : files) states_.push_back(&file->state());
    PIF_ASSERT(states_.size() == outcome_.size(), states_.size(), outcome_.size());
    for (std::size_t i = 0; i < size(); ++i)
      if (states_[i]->session.get() != &session)
        outcome_[i] = fail(Code::kInvalid, fmt::format("{}: it is another client's", states_[i]->parts.path));
  }
  std::size_t size() const { return states_.size(); }
  FileState& state(std::size_t i) { return *states_[i]; }
  access::Requests& requests(std::size_t i) { return states_[i]->writer.requests(); }
  std::vector<Status>& outcome() { return outcome_; }
  // For each file that has not failed yet: step(state, index).
  template <typename Step>
  void each(Step step) {
    for (std::size_t i = 0; i < size(); ++i)
      if (outcome_[i]) outcome_[i] = step(*states_[i], i);
  }
  // Until no request is left. What waits for credit is started in the order of files, as soon as there is some.
  void run() {
    std::size_t first_waiting = 0;
    for (std::size_t i = 0; i < size(); ++i) {
      while (outcome_[i] && !requests(i).idle()) {
        outcome_[i] = states_[i]->session->pump(requests(i));
        start_waiting(first_waiting);
      }
    }
  }

 private:
  void start_waiting(std::size_t& first) {
    for (; first < size(); ++first) {
      access::Requests& next = requests(first);
      if (outcome_[first] && next.waits()) outcome_[first] = next.step();
      if (outcome_[first] && next.waits()) return;
    }
  }

  std::vector<FileState*> states_;
  std::vector<Status> outcome_;
};

// length_of: by number.
template <typename LengthOf>
void commit_sealed(client::Session& session, Batch& batch, LengthOf length_of) {
  std::vector<net::Packet> commits;
  std::vector<client::Change> changes;
  std::vector<std::size_t> which;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (!batch.outcome()[i]) continue;
    commits.push_back(batch.state(i).commit_request(length_of(i)));
    changes.push_back(batch.state(i).commit_change());
    which.push_back(i);
  }
  auto replies = session.change_all(std::move(commits), changes);
  PIF_ASSERT(replies.size() == which.size(), replies.size(), which.size());
  for (std::size_t i = 0; i < which.size(); ++i) {
    if (replies[i])
      batch.state(which[i]).phase = FileState::Phase::kEnded;
    else
      batch.outcome()[which[i]] =
          fail(access::explain_old_view(batch.state(which[i]).parts, std::move(replies[i].error())));
  }
}

// Asks for the length of a file; the answer is taken when the request ends.
void add_length(FileState& file) {
  access::BulkRequest request;
  request.make = [&file] {
    net::Packet packet;
    packet.envelope.mutable_length()->set_file(file.parts.file.value);
    return packet;
  };
  request.take = [&file](net::Packet& reply) -> Status {
    const FileLength file_length =
        file.length.as_published(wire::file_length_of(reply.envelope.length_reply().file_length()));
    if (file.length.check_published(file_length))
      file.length.set(file_length);
    else
      file.length.forget();
    return {};
  };
  // Without LFS 0, or if it has lost what it had, the file is read by itself.
  request.replaceable = access::can_be_rebuilt(file.parts);
  request.refused = [&file](Error error) -> Status {
    if (!access::can_rebuild(file.parts, error)) return fail(std::move(error));
    file.length.forget();
    return {};
  };
  file.writer.requests().add(std::move(request));
}

// One that others have made longer or shorter, or whose records are not of one length, is read by itself.
Status read_alone(FileState& file, std::vector<std::byte>& out) {
  file.length.forget();
  PIF_TRY_VALUE(const FileLength now, file.length.get(true));
  out.resize(now.bytes);
  PIF_TRY_VALUE(const std::size_t got, file.pread(out, 0));
  out.resize(got);
  return {};
}

// The directory has the length that the file's maker said.
bool can_guess(const FileState& file) {
  return file.parts.format.is_fixed() && file.parts.file_length.records > 0 &&
         file.length.check(file.parts.file_length).has_value();
}

// The length is asked for, and the rows that the directory knows of with it.
Status start_reading(FileState& file, std::vector<std::byte>& out) {
  PIF_TRY(file.check_usable());
  PIF_TRY(file.keep_rights());
  if (can_guess(file)) {
    file.length.go_by(file.parts.file_length);
    out.resize(file.length.bytes());
    std::vector<client::ReadPart> parts;
    file.reader.add_parts({0, file.length.records()}, out.data(), parts);
    PIF_TRY(file.reader.read_parts(parts, &file.writer.requests()));
  }
  add_length(file);
  return file.writer.requests().step();
}

// read: how that ended.
Status finish_reading(FileState& file, const Status& read, std::vector<std::byte>& out) {
  const bool is_whole = read && file.length.is_known() && file.length.bytes() == out.size() &&
                        (file.length.records() == 0 || can_guess(file));
  return is_whole ? Status() : read_alone(file, out);
}

}  // namespace

std::vector<Status> Client::commit_many(std::span<File* const> files) {
  return client::in_use_each(session_->user(), files.size(), [&] {
    Batch batch(*session_, files);
    batch.each([](FileState& file, std::size_t) { return file.start_sealing(); });
    batch.run();
    commit_sealed(*session_, batch, [&batch](std::size_t i) { return batch.state(i).length.now(); });
    return std::move(batch.outcome());
  });
}

std::vector<Status> client::commit_sealed_many(Session& session, std::span<File* const> files,
                                               std::span<const FileLength> file_lengths) {
  PIF_ASSERT(files.size() == file_lengths.size(), files.size(), file_lengths.size());
  return in_use_each(session.user(), files.size(), [&] {
    Batch batch(session, files);
    commit_sealed(session, batch, [&](std::size_t i) { return file_lengths[i]; });
    return std::move(batch.outcome());
  });
}

std::vector<Result<std::vector<std::byte>>> Client::read_many(std::span<File* const> files) {
  return client::in_use_each(session_->user(), files.size(), [&] {
    std::vector<Result<std::vector<std::byte>>> out;
    std::vector<std::vector<std::byte>> bytes(files.size());
    Batch batch(*session_, files);
    std::vector<bool> is_begun(files.size());
    batch.each([&](FileState& file, std::size_t i) {
      const Status begun = start_reading(file, bytes[i]);
      is_begun[i] = begun.has_value();
      return begun;
    });
    batch.run();
    for (std::size_t i = 0; i < files.size(); ++i)
      if (is_begun[i]) batch.outcome()[i] = finish_reading(batch.state(i), batch.outcome()[i], bytes[i]);
    for (std::size_t i = 0; i < files.size(); ++i) {
      if (batch.outcome()[i])
        out.emplace_back(std::move(bytes[i]));
      else
        out.emplace_back(fail(std::move(batch.outcome()[i].error())));
    }
    return out;
  });
}

Status Client::close_many(std::span<File* const> files) {
  return client::in_use(session_->user(), [&]() -> Status {
    net::Packet request;
    for (File* file : files) {
      FileState& state = file->state();
      const bool has_news =
          state.length.is_known() && state.length.now() != state.parts.file_length;  // for the directory
      if (state.phase != FileState::Phase::kOpen || state.kind.adopted || has_news ||
          state.session.get() != session_.get()) {
        PIF_TRY(state.close());
        continue;
      }
      state.phase = FileState::Phase::kEnded;
      state.operations.clear();
      request.envelope.mutable_close()->add_files(state.parts.file.value);
    }
    if (!request.envelope.has_close()) return {};
    PIF_TRY(session_->ask_server(std::move(request)));
    return {};
  });
}

}  // namespace pif
