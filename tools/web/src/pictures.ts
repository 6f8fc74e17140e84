// A strip of pictures: a model that learns to draw drew them after its checkpoints, always for the same captions.

import { type Context, nothing } from "./chart";
import { h } from "./dom";
import { number } from "./format";
import type { View } from "./view";

export const hasPictures = (view: View): boolean => (view.pictures?.captions.length ?? 0) > 0;

export function picturesPanel(context: Context): Node[] {
  const pictures = context.view.pictures;
  if (!pictures || pictures.drawn.length === 0) return [nothing("The model draws its first pictures after the first checkpoint.")];
  const captions = pictures.captions.join(", ");
  return [
    h("p", {}, "The model drew a picture for each caption after each checkpoint, each time from the same seed."),
    h("div", { class: "strip", tabindex: 0, role: "region", "aria-label": "Pictures by checkpoint" },
      h("ol", { class: "captions" }, pictures.captions.map((caption) => h("li", {}, caption))),
      pictures.drawn.map(({ epoch, png }) => h("figure", {},
        h("img", { src: png, alt: `Pictures of the model at epoch ${number(epoch)}: ${captions}` }),
        h("figcaption", {}, `epoch ${number(epoch)}`)))),
  ];
}
