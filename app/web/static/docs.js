// Starts Swagger UI. Nothing is sent to a validator, and nothing is loaded from elsewhere.
"use strict";

window.SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#docs",
  deepLinking: true,
  validatorUrl: null,
  tryItOutEnabled: true,
  defaultModelsExpandDepth: -1,
  docExpansion: "list",
  presets: [window.SwaggerUIBundle.presets.apis],
  onComplete() {
    // Its headings go from the first level to the third, and it has links inside of buttons.
    for (const heading of document.querySelectorAll("h3.opblock-tag")) heading.setAttribute("aria-level", "2");
    for (const link of document.querySelectorAll("button a.nostyle")) link.removeAttribute("href");
  },
});
