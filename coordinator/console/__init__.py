"""The web console: a page, styles and ES modules, served as they are. No build step.

Always holds: nothing is fetched from elsewhere; text from the system reaches the page as text nodes
only, so that no input, result or reason can become markup.
"""
