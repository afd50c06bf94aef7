// SPDX-License-Identifier: Apache-2.0
#include "terraform/spool.hpp"

#define XXH_INLINE_ALL
#include <openssl/crypto.h>
#include <xxhash.h>
#include <zlib.h>

#include "driftd/sdk/types.hpp"

namespace driftd::terraform {
namespace {

constexpr std::uint64_t kMostText = 512ull << 20, kMaxStored = 192ull << 20;
constexpr std::size_t kBlock = 256 << 10;
constexpr std::size_t kLargestWrite = 1 << 20;

void wipe(std::string& bytes) { OPENSSL_cleanse(bytes.data(), bytes.size()); }

Bytef* in_of(std::string_view bytes) { return reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data())); }
Bytef* out_of(std::string& block, std::size_t at) { return reinterpret_cast<Bytef*>(block.data() + at); }

}  // namespace

struct Spool::Deflate {
  Deflate() {
    if (deflateInit(&stream, Z_BEST_SPEED) != Z_OK) throw sdk::Failure(DRIFTD_BUDGET, "no memory is left for a state");
    XXH3_128bits_reset(&hash);
  }
  ~Deflate() { deflateEnd(&stream); }
  Deflate(const Deflate&) = delete;
  Deflate& operator=(const Deflate&) = delete;
  z_stream stream{};
  std::size_t used = kBlock;  // of the last block
  XXH3_state_t hash;
};

Spool::Spool() : deflate_(std::make_unique<Deflate>()) {}
Spool::Spool(Spool&&) noexcept = default;
Spool& Spool::operator=(Spool&& other) noexcept {
  for (auto& block : blocks_) wipe(block);
  deflate_ = std::move(other.deflate_);
  blocks_ = std::move(other.blocks_);
  size_ = other.size_;
  stored_ = other.stored_;
  hash_ = std::move(other.hash_);
  return *this;
}
Spool::~Spool() {
  for (auto& block : blocks_) wipe(block);
}

void Spool::pump(std::string_view bytes, int flush) {
  z_stream& z = deflate_->stream;
  z.next_in = in_of(bytes);
  z.avail_in = static_cast<uInt>(bytes.size());
  do {
    if (deflate_->used == kBlock) {
      if (blocks_.size() * kBlock >= kMaxStored) {
        throw sdk::Failure(DRIFTD_BUDGET, "the state is more than 192 MiB also when compressed");
      }
      blocks_.emplace_back(kBlock, '\0');
      deflate_->used = 0;
    }
    z.next_out = out_of(blocks_.back(), deflate_->used);
    z.avail_out = static_cast<uInt>(kBlock - deflate_->used);
    deflate(&z, flush);
    deflate_->used = kBlock - z.avail_out;
  } while (z.avail_out == 0);
}

void Spool::write(std::string_view bytes) {
  size_ += bytes.size();
  if (size_ > kMostText)
    throw sdk::Failure(DRIFTD_BUDGET, "the state is larger than 512 MiB; at most that much is read");
  XXH3_128bits_update(&deflate_->hash, bytes.data(), bytes.size());
  for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), kLargestWrite))) {
    pump(bytes.substr(0, kLargestWrite), Z_NO_FLUSH);
  }
}

void Spool::finish() {
  pump({}, Z_FINISH);
  blocks_.back().resize(deflate_->used);
  stored_ = (blocks_.size() - 1) * kBlock + deflate_->used;
  XXH128_canonical_t sum;
  XXH128_canonicalFromHash(&sum, XXH3_128bits_digest(&deflate_->hash));
  for (const unsigned char byte : sum.digest) {
    hash_ += "0123456789abcdef"[byte >> 4];
    hash_ += "0123456789abcdef"[byte & 15];
  }
  deflate_.reset();
}

std::string Spool::text() const {
  Reader reader(*this);
  std::string out(static_cast<std::size_t>(size_), '\0');
  out.resize(static_cast<std::size_t>(reader.sgetn(out.data(), static_cast<std::streamsize>(out.size()))));
  return out;
}

struct Spool::Reader::State {
  State() { inflateInit(&stream); }
  ~State() {
    inflateEnd(&stream);
    wipe(window);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  z_stream stream{};
  std::size_t next_block = 0;
  std::string window = std::string(kBlock, '\0');
};

Spool::Reader::Reader(const Spool& spool) : spool_(spool), state_(std::make_unique<State>()) {}
Spool::Reader::~Reader() = default;

Spool::Reader::int_type Spool::Reader::underflow() {
  z_stream& z = state_->stream;
  std::string& window = state_->window;
  z.next_out = out_of(window, 0);
  z.avail_out = static_cast<uInt>(window.size());
  while (z.avail_out == window.size()) {
    if (z.avail_in == 0) {
      if (state_->next_block == spool_.blocks_.size()) return traits_type::eof();
      const std::string& block = spool_.blocks_[state_->next_block++];
      z.next_in = in_of(block);
      z.avail_in = static_cast<uInt>(block.size());
    }
    const int status = inflate(&z, Z_NO_FLUSH);
    if (status == Z_STREAM_END) break;
    if (status != Z_OK && status != Z_BUF_ERROR)
      throw sdk::Failure(DRIFTD_INTERNAL, "a state's copy in memory is damaged");
  }
  const std::size_t got = window.size() - z.avail_out;
  if (got == 0) return traits_type::eof();
  setg(window.data(), window.data(), window.data() + got);
  return traits_type::to_int_type(window[0]);
}

struct Gunzip::State {
  State() { inflateInit2(&stream, 15 + 16); }  // 16: a gzip header, its checksum is verified
  ~State() {
    inflateEnd(&stream);
    wipe(window);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  z_stream stream{};
  bool ended = false;
  std::string window = std::string(kBlock, '\0');
};

Gunzip::Gunzip(Spool& to) : to_(to), state_(std::make_unique<State>()) {}
Gunzip::~Gunzip() = default;

void Gunzip::write(std::string_view bytes) {
  z_stream& z = state_->stream;
  z.next_in = in_of(bytes);
  z.avail_in = static_cast<uInt>(bytes.size());
  while (!state_->ended && z.avail_in > 0) {
    z.next_out = out_of(state_->window, 0);
    z.avail_out = static_cast<uInt>(kBlock);
    const int status = inflate(&z, Z_NO_FLUSH);
    if (status != Z_OK && status != Z_STREAM_END)
      throw sdk::Failure(DRIFTD_CORRUPT, "the state is no gzip, or a damaged one");
    to_.write(std::string_view(state_->window).substr(0, kBlock - z.avail_out));
    state_->ended = status == Z_STREAM_END;
  }
  // inflate keeps what did not fit into the window and needs no new input until that is read.
  while (!state_->ended && z.avail_out == 0) {
    z.next_out = out_of(state_->window, 0);
    z.avail_out = static_cast<uInt>(kBlock);
    const int status = inflate(&z, Z_NO_FLUSH);
    to_.write(std::string_view(state_->window).substr(0, kBlock - z.avail_out));
    state_->ended = status == Z_STREAM_END;
    if (status == Z_BUF_ERROR) break;
  }
}

void Gunzip::finish() {
  if (!state_->ended) throw sdk::Failure(DRIFTD_CORRUPT, "the gzipped state is cut off");
}

std::string beginning_of(std::string_view bytes) {
  constexpr std::size_t kMost = 64u << 10;  // of deflated bytes, of which each is at most a thousand
  if (bytes.empty() || bytes[0] != '\x1f') return std::string(bytes);
  try {
    Spool spool;
    Gunzip(spool).write(bytes.substr(0, kMost));
    spool.finish();
    return spool.text();
  } catch (const std::exception&) {  // damaged: a fetch says so
    return {};
  }
}

}  // namespace driftd::terraform
