/* assemble: the images of a batch gathered, cropped, normalised, scaled, joined and mixed in one
   pass, for pixels of the type PIXEL.

   Each value is rounded as often as in the passes of PyTorch, which multiplies and adds in one
   rounding where the processor can: to be compiled without contractions of the compiler's own. */

#include <math.h>
#include <stdint.h>

#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define MULTIPLY_ADD(a, b, c) fmaf(a, b, c)
#else
#define MULTIPLY_ADD(a, b, c) ((a) * (b) + (c))
#endif

/* Raw images, (channels, height, width) each, and how they are seen. */
struct images {
    const PIXEL *pixels;
    const int32_t *chosen;  /* those of the pixels that indices count; null: all */
    const int32_t *beside;  /* of each image, the one that is joined to it; null: none */
    const float *scale;     /* of each value of an image */
    const float *shift;     /* as scale */
    int64_t channels, height, width;
    int64_t padding;        /* black pixels around an image that a crop may show */
};

struct accesses {
    const int64_t *indices;
    const float *gamma;     /* scale of the own view, where another is joined */
    const int64_t *moves;   /* row and column where a crop begins, 1 to mirror; null: no crops */
};

/* The i-th image accessed, one view of it: its raw values, and what they are scaled by. */
static const PIXEL *raw_of(const struct images *of, const struct accesses *by, int64_t i,
                           int view) {
    int64_t image = by->indices[i];
    if (view)
        image = of->beside[image];
    if (of->chosen)
        image = of->chosen[image];
    return of->pixels + image * of->channels * of->height * of->width;
}

static float factor_of(const struct images *of, const struct accesses *by, int64_t i, int view) {
    if (!of->beside)
        return 1.0f;
    return view ? 1.0f - by->gamma[i] : by->gamma[i];
}

/* Images lie anywhere: ask for the begin of the next while this one is computed. */
static void expect(const PIXEL *raw, int64_t size) {
    int64_t bytes = size * (int64_t)sizeof(PIXEL);
    for (int64_t at = 0; at < bytes && at < 4096; at += 64)
        __builtin_prefetch((const char *)raw + at);
}

static void see(const PIXEL *restrict raw, const float *restrict scale,
                const float *restrict shift, float factor, int64_t size, float *restrict out) {
    for (int64_t i = 0; i < size; i++)
        out[i] = MULTIPLY_ADD((float)raw[i], scale[i], shift[i]) * factor;
}

static void see_crop(const PIXEL *restrict raw, const float *restrict scale,
                     const float *restrict shift, float factor, const struct images *of,
                     const int64_t *move, float *restrict out) {
    for (int64_t row = 0; row < of->height; row++)
        for (int64_t column = 0; column < of->width; column++, out++, scale++, shift++) {
            int64_t y = row + move[0] - of->padding;
            int64_t x = (move[2] ? of->width - 1 - column : column) + move[1] - of->padding;
            int is_inside = y >= 0 && y < of->height && x >= 0 && x < of->width;
            float value = is_inside ? (float)raw[y * of->width + x] : 0.0f;
            *out = MULTIPLY_ADD(value, *scale, *shift) * factor;
        }
}

/* lam own + (1 - lam) partner, from the nearer of both, as torch.lerp has it. */
static inline float mixed(float own, float partner, float lam, int is_partner_nearer) {
    return is_partner_nearer ? MULTIPLY_ADD(lam, own - partner, partner)
                             : MULTIPLY_ADD(lam - 1.0f, own - partner, own);
}

static void mix(float *restrict own, const float *restrict partner, float lam, int64_t size) {
    int is_partner_nearer = lam < 0.5f;
    for (int64_t i = 0; i < size; i++)
        own[i] = mixed(own[i], partner[i], lam, is_partner_nearer);
}

/* `see` of both and `mix` at once, with nothing written between. */
static void see_mixed(const PIXEL *restrict raw, const PIXEL *restrict partner,
                      const float *restrict scale, const float *restrict shift, float factor,
                      float partner_factor, float lam, int64_t size, float *restrict out) {
    int is_partner_nearer = lam < 0.5f;
    for (int64_t i = 0; i < size; i++) {
        float own = MULTIPLY_ADD((float)raw[i], scale[i], shift[i]) * factor;
        float other = MULTIPLY_ADD((float)partner[i], scale[i], shift[i]) * partner_factor;
        out[i] = mixed(own, other, lam, is_partner_nearer);
    }
}

/* Write `count` images to out; room holds one channel, and without partners nothing is mixed. */
void assemble(const struct images *of, int64_t count, const struct accesses *own,
              const struct accesses *partners, const float *lam, float *room, float *out) {
    int64_t size = of->height * of->width;
    for (int64_t i = 0; i < count; i++)
        for (int view = 0; view <= (of->beside != 0); view++) {
            const PIXEL *raw = raw_of(of, own, i, view), *partner = 0;
            float factor = factor_of(of, own, i, view), partner_factor = 0.0f;
            if (i + 1 < count)
                expect(raw_of(of, own, i + 1, view), of->channels * size);
            if (partners) {
                partner = raw_of(of, partners, i, view);
                partner_factor = factor_of(of, partners, i, view);
                if (i + 1 < count)
                    expect(raw_of(of, partners, i + 1, view), of->channels * size);
            }
            for (int64_t channel = 0; channel < of->channels; channel++, out += size) {
                int64_t at = channel * size;
                const float *scale = of->scale + at, *shift = of->shift + at;
                if (own->moves) {
                    see_crop(raw + at, scale, shift, factor, of, own->moves + 3 * i, out);
                    if (partners) {
                        see_crop(partner + at, scale, shift, partner_factor, of,
                                 partners->moves + 3 * i, room);
                        mix(out, room, lam[i], size);
                    }
                } else if (partners) {
                    see_mixed(raw + at, partner + at, scale, shift, factor, partner_factor, lam[i],
                              size, out);
                } else {
                    see(raw + at, scale, shift, factor, size, out);
                }
            }
        }
}
